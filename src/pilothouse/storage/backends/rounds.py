"""One question at a time on behalf of all who ask it: each gets an answer that was asked for after they came.

asked:   A        B C                      B and C come while A's question is on its way, whose answer may be older
rounds:  [── 1 ──][── 2 ──]                than they are; they share the next one
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from pilothouse.machinery.supervision import Supervisor

T = TypeVar("T")


class SharedRounds(Generic[T]):
    """Asks in rounds."""

    def __init__(self, name: str, ask: Callable[[], Awaitable[T]], supervisor: Supervisor) -> None:
        self._name, self._ask, self._supervisor = name, ask, supervisor
        self._waiting: list[asyncio.Future[T]] = []
        self._asked: list[asyncio.Future[T]] = []
        self._busy = False

    async def get(self) -> T:
        """The answer of a round that begins after this call. Raises what asking raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if not self._busy:
            self._busy = True
            self._supervisor.spawn(self._name, self._work())
        return await future

    def close(self, error: Exception) -> None:
        """Nobody is answered any more; to be called when the supervisor has ended."""
        for future in (*self._asked, *self._waiting):
            if not future.done():
                future.set_exception(error)
        self._asked, self._waiting = [], []

    async def _work(self) -> None:
        while self._waiting:
            self._asked, self._waiting = self._waiting, []
            await self._round()
        self._busy = False

    async def _round(self) -> None:
        try:
            answer = await self._ask()
        except Exception as error:
            for future in self._asked:
                if not future.done():
                    future.set_exception(error)
        else:
            for future in self._asked:
                if not future.done():
                    future.set_result(answer)
        self._asked = []
