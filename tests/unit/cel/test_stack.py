"""Deep expressions work on the usual stack, and leave the limit of the process as it was."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from pilothouse.cel.issues import CompileError
from pilothouse.cel.kubernetes import base_environment
from pilothouse.cel.stack import is_deep, room_for


@pytest.fixture(autouse=True)
def usual_limit() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    assert sys.getrecursionlimit() == 1000
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 240 + "true" + ")" * 240,
        "[" * 200 + "1" + "]" * 200 + "[0]" * 200 + " == 1",
        "+".join(["1"] * 240) + " == 240",
        "false ? false : " * 200 + "true",
        "[1].all(x, " * 30 + "x == 1" + ")" * 30,
        "!(" * 240 + "true" + ")" * 240,
        " || ".join(["false"] * 3000) + " || true",
    ],
)
def test_deep_expressions(text: str) -> None:
    assert is_deep(text)
    assert base_environment().compile(text).evaluate({}).value is True


@pytest.mark.parametrize(
    "text",
    [
        "(" * 33 + "true" + ")" * 33,
        "+".join(["1"] * 130) + " == 130",
        "[" * 16 + "1" + "]" * 16 + "[0]" * 16 + " == 1",
        "[1].all(x, " * 14 + "x == 1" + ")" * 14,
    ],
)
def test_others_need_no_more_than_usual(text: str) -> None:
    assert not is_deep(text)
    assert base_environment().compile(text).evaluate({}).value is True


def test_texts_that_are_too_deep() -> None:
    with pytest.raises(CompileError, match="recursion limit exceeded"):
        base_environment().compile("(" * 4000)


def test_the_last_one_out_puts_the_limit_back() -> None:
    deep = "(" * 100
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with room_for(deep):
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    with room_for(deep):
        assert sys.getrecursionlimit() > 1000
    assert sys.getrecursionlimit() > 1000
    leave.set()
    thread.join()
