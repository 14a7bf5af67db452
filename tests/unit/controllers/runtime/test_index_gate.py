"""Handlers wait for as long as any index lacks objects."""

from __future__ import annotations

from pilothouse.controllers.runtime.index_gate import IndexGate


def test_it_opens_when_all_indexes_are_whole() -> None:
    gate, opened = IndexGate(), []
    assert gate.is_open
    gate.close()
    gate.close()
    gate.wait(lambda: opened.append("one"))
    gate.open()
    assert (gate.is_open, opened) == (False, [])
    gate.wait(lambda: opened.append("other"))
    gate.open()
    assert (gate.is_open, opened) == (True, ["one", "other"])
    gate.close()
    gate.open()
    assert opened == ["one", "other"]
