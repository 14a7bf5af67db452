"""Answers to a crowd leave together.

An answer that is sent wakes its client and goes through encryption and the kernel, after which nothing of the server is
left in the processor's caches. With many clients at once it is cheaper to work on some of their requests and to send
the answers then. So where one connection after another is answered, answers wait for each other: at most as long as the
work of a millisecond, and never beyond the turn of the loop. Whoever is alone is answered at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

_CROWD: Final = 8
"""After so many answers, each to another connection than the one before, those that follow wait for each other."""
_MOST: Final = 32
_LONGEST_SECONDS: Final = 0.001


class Answering(Protocol):
    """A connection that keeps an answer back."""

    def send_kept(self) -> None:
        """Send the answer, if it has not been sent yet."""


class AnswerTurns:
    """The answers of all connections of a server that are about to leave."""

    __slots__ = ("_clock", "_due", "_in_a_row", "_last", "_loop", "_since")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = perf_counter) -> None:
        self._loop, self._clock = loop, clock
        self._due: list[Answering] = []
        self._since = 0.0
        self._last: Answering | None = None
        self._in_a_row = 0

    def keeps(self, connection: Answering) -> bool:
        """Whether the answer of this connection is to be kept until it is asked to send it, which will be soon."""
        if connection is self._last:
            self._in_a_row = 0
            return False
        self._last = connection
        if self._in_a_row < _CROWD:
            self._in_a_row += 1
            return False
        due = self._due
        if not due:
            self._since = self._clock()
            self._loop.call_soon(self._leave)
        elif len(due) >= _MOST or self._clock() - self._since > _LONGEST_SECONDS:
            self._leave()
            return False
        due.append(connection)
        return True

    def forget(self, connection: object) -> None:
        """A connection has gone."""
        if connection is self._last:
            self._last = None

    def _leave(self) -> None:
        due, self._due = self._due, []
        for connection in due:
            connection.send_kept()
