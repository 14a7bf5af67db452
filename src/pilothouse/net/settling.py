"""Tells writers what became of their writes, for a while in each turn of the loop.

A commit, or a look at the audit log's thread, has hundreds of writes, and whoever awaits one goes on within the call
that tells it: answers are written, and audited, and the next step of a request begins. All at once that is a turn of
tens of milliseconds, which everybody else waits for. So whoever wrote hears of it in order, some in each turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Final, Generic, TypeVar

from pilothouse.net.eager import Prompt

TURN_SECONDS: Final = 0.004
TASKS: Final = 4
"""How many tasks hear of their result in a turn: they go on in the next one only, and take their time there."""

T = TypeVar("T")


class Settling(Generic[T]):
    """Results that those who wait for them have not heard of yet."""

    __slots__ = ("_clock", "_waiting")

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._waiting: deque[tuple[Prompt[T], T | Exception]] = deque()

    def add(self, results: Iterable[tuple[Prompt[T], T | Exception]]) -> None:
        """Tell of more of them: now, as long as there is time in this turn."""
        is_under_way = bool(self._waiting)
        self._waiting.extend(results)
        if not is_under_way:
            self._turn()

    def _turn(self) -> None:
        ends, tasks = self._clock() + TURN_SECONDS, 0
        try:
            while self._waiting:
                future, result = self._waiting.popleft()
                tasks += future.waiter is None
                if isinstance(result, Exception):
                    future.refuse(result)
                else:
                    future.settle(result)
                if tasks == TASKS or self._clock() >= ends:
                    break
        finally:  # whatever becomes of one, others wait
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._turn)
