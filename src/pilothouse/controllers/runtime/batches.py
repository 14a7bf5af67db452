"""Doing many like things at once, but not all at once: what fails for one usually fails for all.

Batches double in size (1, 2, 4, ... 64) for as long as every call of a batch succeeds. A quota that refuses the first
pod is asked once, not five hundred times. All share one event loop: greater batches would not be done earlier, but each
call in them would seem to take long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

from pilothouse.net.work_turns import work_turns

T = TypeVar("T")
R = TypeVar("R")
_LARGEST: Final = 64
_LOOKED_AT: Final = 1_000


async def slow_start_batch(
    count: int, call: Callable[[int], Awaitable[object]], initial: int = 1
) -> tuple[int, Exception | None]:
    """Make so many calls, each with its number; how many succeeded, and the first error, which ends it."""
    done, size = 0, min(initial, count)
    begun = 0
    while size > 0:
        results = await asyncio.gather(*(call(begun + i) for i in range(size)), return_exceptions=True)
        begun += size
        failures = [result for result in results if isinstance(result, BaseException)]
        done += size - len(failures)
        for failure in failures:
            if not isinstance(failure, Exception):
                raise failure
        if failures:
            first = failures[0]
            assert isinstance(first, Exception)
            return done, first
        size = min(2 * size, _LARGEST, count - begun)
    return done, None


async def results_of(items: Sequence[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """Do something for each, some at once; what came of each. A failure ends it."""
    results: list[R] = []
    for start in range(0, len(items), _LARGEST):
        results += await asyncio.gather(*map(work, items[start : start + _LARGEST]))
    return results


async def attempt_all(items: Iterable[T], work: Callable[[T], Awaitable[object]]) -> None:
    """Do something for each, whatever fails for others; the first failure is raised when all were tried.

    For rounds by the clock: what fails for one object every time must not keep others from their turn.
    """
    first: Exception | None = None
    for item in items:
        try:
            await work(item)
        except Exception as error:
            first = first or error
    if first is not None:
        raise first


async def found_among(items: Sequence[T], is_wanted: Callable[[T], bool]) -> list[T]:
    """Those of very many that are wanted, looked for in turns with others."""
    turns = work_turns()
    found: list[T] = []
    for start in range(0, len(items), _LOOKED_AT):
        await turns.begin()
        found += filter(is_wanted, items[start : start + _LOOKED_AT])
    return found
