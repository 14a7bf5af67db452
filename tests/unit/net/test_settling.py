"""Many writers hear of their results in the order of the log, and others get their turn in between."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.net.working_clock import Clock

from pilothouse.net.eager import Prompt
from pilothouse.net.settling import TASKS, TURN_SECONDS, Settling


async def told(settling: Settling[int], clock: Clock, count: int, seconds: float) -> list[int]:
    """Who heard of a result, each busy for so long; -1 for each turn in which somebody else was asked."""
    seen: list[int] = []
    futures = [Prompt[int]() for _ in range(count)]

    def goes_on(number: int) -> None:
        clock.now += seconds
        seen.append(number)

    for number, future in enumerate(futures):
        future.waiter = lambda number=number: goes_on(number)
    settling.add((future, number) for number, future in enumerate(futures))
    while not futures[-1].done():
        seen.append(-1)
        await asyncio.sleep(0)
    assert [future.result() for future in futures] == list(range(count))
    return seen


async def test_whoever_is_brief_hears_of_it_at_once() -> None:
    clock = Clock()
    assert await told(Settling[int](clock), clock, 50, 0.0) == list(range(50))


async def test_others_get_their_turn_after_a_while() -> None:
    clock = Clock()
    assert await told(Settling[int](clock), clock, 5, TURN_SECONDS / 2) == [0, 1, -1, 2, 3, -1, 4]


async def test_few_tasks_hear_of_it_in_a_turn() -> None:
    """They go on in the turn that follows, all of them at once."""
    settling, futures = Settling[int](Clock()), [Prompt[int]() for _ in range(TASKS + 1)]
    settling.add((future, 1) for future in futures)
    assert [future.done() for future in futures] == [True] * TASKS + [False]
    assert await futures[-1] == 1


async def test_what_comes_meanwhile_waits_behind() -> None:
    settling, first, last = Settling[int](Clock()), [Prompt[int]() for _ in range(TASKS + 1)], Prompt[int]()
    settling.add((future, 1) for future in first)
    settling.add([(last, OSError("closed"))])
    assert not last.done()
    with pytest.raises(OSError, match="closed"):
        await last
    assert first[-1].done()


async def test_one_that_fails_holds_up_nobody() -> None:
    settling, futures = Settling[int](), [Prompt[int]() for _ in range(2)]

    def fails() -> None:
        raise RuntimeError("on purpose")

    futures[0].waiter = fails
    with pytest.raises(RuntimeError):
        settling.add((future, 1) for future in futures)
    assert await futures[1] == 1
