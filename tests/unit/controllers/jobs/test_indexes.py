"""Sets of completion indexes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controllers.jobs.indexes import INDEX, Indexes, index_of

SETS = st.sets(st.integers(0, 40))


@pytest.mark.parametrize(
    ("text", "completions", "read"),
    [
        ("", 5, ""),
        ("0", 5, "0"),
        ("0,1", 5, "0,1"),
        ("0,1,2", 5, "0-2"),
        ("0-2,4", 5, "0-2,4"),
        ("0-9", 5, "0-4"),
        ("3,7", 5, "3"),
        ("x,1,2-y,3", 5, "1,3"),
    ],
)
def test_parse(text: str, completions: int, read: str) -> None:
    assert str(Indexes.parse(text, completions)) == read


@given(SETS, SETS)
def test_is_a_set(left: set[int], right: set[int]) -> None:
    ours, theirs = Indexes.of(left), Indexes.of(right)
    assert len(ours) == len(left)
    assert {each for each in range(50) if each in ours} == left
    assert ours.shared_with(theirs) == len(left & right)
    assert str(ours | theirs) == str(Indexes.of(left | right))
    assert str(Indexes.parse(str(ours), 50)) == str(ours)


@given(SETS, st.integers(0, 50), st.integers(0, 50))
def test_missing(taken: set[int], below: int, count: int) -> None:
    expected = [each for each in range(below) if each not in taken][:count]
    assert Indexes.of(taken).missing(below, count) == expected


@pytest.mark.parametrize("text", ["9" * 5_000, "²", "", "-1", "a"])
def test_what_is_no_index_is_passed_over(text: str) -> None:
    assert index_of({"metadata": {"annotations": {INDEX: text}}}) is None
    assert str(Indexes.parse(f"1,{text},3-{text or 'x'},5", 10)) == "1,5"


def test_sets_are_joined() -> None:
    some, none = Indexes.of([3, 1, 2]), Indexes()
    assert some | none is some
    assert none | some is some
    assert str(some | Indexes.of([7, 8])) == "1-3,7,8"
