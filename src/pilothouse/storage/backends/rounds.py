"""One question at a time on behalf of all who ask it: each gets an answer that was asked for after they came.

asked:   A        B C                      B and C come while A's question is on its way, whose answer may be older
rounds:  [── 1 ──][── 2 ──]                than they are; they share the next one

Who asks does so in his own coroutine: A asks the first, B the second for C too. So a lone reader, the most frequent
one, costs neither a task nor a turn of the loop. Who asked and leaves before the answer is there (his client is gone,
his time is up) leaves the question to the next of those who wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Turn:
    """Told to one who waits: the next question is yours."""


class SharedRounds(Generic[T]):
    """Asks in rounds."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._waiting: list[asyncio.Future[T | _Turn]] = []
        self._asked: list[asyncio.Future[T | _Turn]] = []
        """Those who are not the one who asks, in the present round."""
        self._busy = False

    async def get(self) -> T:
        """The answer of a round that begins after this call. Raises what asking raises."""
        if self._busy:
            future: asyncio.Future[T | _Turn] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                told = await future
            except BaseException:
                if _was_given_the_turn(future):
                    self._go_on()
                raise
            if not isinstance(told, _Turn):
                return told
        self._busy = True
        self._asked, self._waiting = self._waiting, []
        try:
            answer = await self._ask()
        except Exception as error:
            for other in self._take_asked():
                other.set_exception(error)
            self._go_on()
            raise
        except BaseException:
            self._waiting[:0] = self._take_asked()
            self._go_on()
            raise
        for other in self._take_asked():
            other.set_result(answer)
        self._go_on()
        return answer

    def close(self, error: Exception) -> None:
        """Nobody who waits for another's question is answered any more."""
        waiting, self._waiting = self._waiting, []
        for future in (*self._take_asked(), *waiting):
            if not future.done():
                future.set_exception(error)

    def _take_asked(self) -> list[asyncio.Future[T | _Turn]]:
        asked, self._asked = self._asked, []
        return [future for future in asked if not future.done()]

    def _go_on(self) -> None:
        """Give the turn to the first of those who wait."""
        self._waiting = [future for future in self._waiting if not future.done()]
        if self._waiting:
            self._waiting.pop(0).set_result(_Turn())
        else:
            self._busy = False


def _was_given_the_turn(future: asyncio.Future[T | _Turn]) -> bool:
    """Whether one who is cancelled had been told to ask, and can no more."""
    return (
        future.done() and not future.cancelled() and future.exception() is None and isinstance(future.result(), _Turn)
    )
