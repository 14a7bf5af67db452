"""Whatever is done to the system's clock, keys end after their time and history is forgotten after its."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilothouse.storage.backends.sqlite import Retention, SQLiteBackend
from pilothouse.storage.backends.sqlite.clock import StoreClock


def test_the_system_clock_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: moment)
    clock = StoreClock()
    assert moment <= clock() < moment + 60
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert moment <= clock() < moment + 60


async def test_a_clock_set_back_between_two_starts(tmp_path: Path) -> None:
    now = 1_000_000.0
    store = SQLiteBackend(str(tmp_path / "store.db"), clock=lambda: now, upkeep_seconds=0)
    await store.open()
    await store.create("/event", b"1", ttl_seconds=3600)
    now += 100
    await store.maintain()
    await store.close()

    now = 5.0
    store = SQLiteBackend(
        str(tmp_path / "store.db"), clock=lambda: now, upkeep_seconds=0, retention=Retention(seconds=300, marks=10)
    )
    await store.open()
    await store.maintain()
    now += 3400
    await store.maintain()
    assert await store.get("/event") is not None
    assert await store.compacted_revision() > 0
    now += 200
    await store.maintain()
    assert await store.get("/event") is None
    await store.close()
