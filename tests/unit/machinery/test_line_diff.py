from __future__ import annotations

import difflib
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import line_diff
from pilothouse.machinery.line_diff import unified_diff
from pilothouse.machinery.workers import PATIENCE, NeedsTime

_LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e\n"]), max_size=40)


def of_difflib(before: list[str], after: list[str]) -> str:
    return "".join(list(difflib.unified_diff(before, after))[2:])


@given(_LINES, _LINES)
def test_short_texts_differ_as_difflib_has_it(before: list[str], after: list[str]) -> None:
    assert unified_diff(before, after) == of_difflib(before, after)


def test_a_range_of_one_line_shows_no_length() -> None:
    assert unified_diff(["a\n"], ["b\n"]) == "@@ -1 +1 @@\n-a\n+b\n"
    assert unified_diff([], ["b\n", "c\n"]) == "@@ -0,0 +1,2 @@\n+b\n+c\n"


def reversed_blocks(count: int) -> tuple[list[str], list[str]]:
    """Texts that share their lines in another order, each of them once in every block."""
    blocks = [[f"name {number}\n", *(f"line {line}\n" for line in range(120))] for number in range(count)]
    return [line for block in blocks for line in block], [line for block in reversed(blocks) for line in block]


def test_what_is_left_after_enough_work_is_shown_as_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = reversed_blocks(5)
    monkeypatch.setattr(line_diff, "_MOST_STEPS", 0)
    shown = unified_diff(before, after).splitlines(keepends=True)[1:]
    assert shown == [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]


def test_the_text_ends_where_nobody_reads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_diff, "_MOST_TEXT", 100)
    shown = unified_diff(["x" * 60 + "\n"] * 10, [])
    assert shown == "@@ -1,10 +0,0 @@\n" + ("-" + "x" * 60 + "\n") * 2


def test_long_work_is_not_done_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PATIENCE, "left", 10_000)
    with pytest.raises(NeedsTime):
        unified_diff(*reversed_blocks(150))


def test_all_small_texts() -> None:
    for before, after in product(product("ab", repeat=4), repeat=2):
        lines = [f"{each}\n" for each in before], [f"{each}\n" for each in after]
        assert unified_diff(*lines) == of_difflib(*lines)
