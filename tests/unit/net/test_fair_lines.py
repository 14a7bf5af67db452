"""Owners take turns, whoever came first."""

from pilothouse.net.fair_lines import FairLines


def test_owners_take_turns() -> None:
    lines = FairLines[str]()
    for one in ("a1", "a2", "a3", "b1", "b2", "c1"):
        lines.add(one, one[0])
    assert list(lines) == ["a1", "b1", "c1", "a2", "b2", "a3"]
    lines.remove("a1", "a")
    assert list(lines) == ["b1", "c1", "a2", "b2", "a3"]
    lines.remove("b2", "b")
    assert list(lines) == ["c1", "a2", "b1", "a3"]
    for one in ("c1", "a2", "b1", "a3"):
        lines.remove(one, one[0])
    assert not lines


def test_who_is_not_there_can_be_taken_out() -> None:
    lines = FairLines[str]()
    lines.remove("a1", "a")
    assert not lines
