"""One question at a time on behalf of all who ask it: each gets an answer that was asked for after they came.

asked:   A        B C                      B and C come while A's question is on its way, whose answer may be older
rounds:  [── 1 ──][── 2 ──]                than they are; they share the next one

Who will ask in a moment may have his question sent ahead while nobody else asks (`foresee`), and do his work while it
is answered. Those who come meanwhile share the next one, as ever.

Who asks does so in his own coroutine: A asks the first, B the second for C too. So a lone reader, the most frequent
one, costs neither a task nor a turn of the loop. Who asked and leaves before the answer is there (his client is gone,
his time is up) leaves the question to the next of those who wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from pilothouse.net import eager
from pilothouse.net.eager import Prompt

T = TypeVar("T")


class _Turn:
    """Told to one who waits: the next question is yours."""


class SharedRounds(Generic[T]):
    """Asks in rounds."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._waiting: list[Prompt[T | _Turn]] = []
        self._asked: list[Prompt[T | _Turn]] = []
        """Those who are not the one who asks, in the present round."""
        self._busy = False

    async def get(self) -> T:
        """The answer of a round that begins after this call. Raises what asking raises."""
        if self._busy:
            future: Prompt[T | _Turn] = Prompt()
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
            for other in self._end_round():
                other.refuse(error)
            raise
        except BaseException:
            self._waiting[:0] = self._asked
            self._end_round()
            raise
        for other in self._end_round():
            other.settle(answer)
        return answer

    def foresee(self) -> Awaitable[T] | None:
        """Ask for one who comes soon, and waits for what this gives. None while another asks."""
        if self._busy:
            return None
        self._busy = True
        asked: Prompt[T] = Prompt()

        def told(answer: T) -> None:
            self._end_round()
            asked.settle(answer)

        def failed(error: BaseException) -> None:
            self._end_round()
            if isinstance(error, Exception):
                asked.refuse(error)
                asked.exception()  # perhaps nobody comes to hear it
            else:
                asked.cancel()

        eager.start(self._ask(), asyncio.get_running_loop(), told, failed)
        return asked

    def close(self, error: Exception) -> None:
        """Nobody who waits for another's question is answered any more."""
        others, self._asked, self._waiting = [*self._asked, *self._waiting], [], []
        for other in others:
            other.refuse(error)

    def _end_round(self) -> list[Prompt[T | _Turn]]:
        """Have the next question asked, so that it is under way while those who shared this one (returned) go on."""
        asked, self._asked = self._asked, []
        self._go_on()
        return asked

    def _go_on(self) -> None:
        """Give the turn to the first of those who wait."""
        waiting = [future for future in self._waiting if not future.done()] if self._waiting else []
        if waiting:
            self._waiting = waiting[1:]
            waiting[0].settle(_Turn())
        else:
            self._waiting, self._busy = waiting, False


def _was_given_the_turn(future: Prompt[T | _Turn]) -> bool:
    """Whether one who is cancelled had been told to ask, and can no more."""
    return (
        future.done() and not future.cancelled() and future.exception() is None and isinstance(future.result(), _Turn)
    )
