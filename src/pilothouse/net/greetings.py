"""Work on connections that are being made, a little in each turn of the loop.

A step of a TLS handshake takes a millisecond of the processor, and anybody can ask for hundreds of them at once. The
loop would take them all in one turn, and whoever is connected already would wait for the end. Here they wait instead:
the first of a turn is done at once, so that a client that comes alone loses nothing, and what comes behind it is done
in the turns that follow, in its order, each for as long as nobody notices.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_SECONDS: Final = 0.001
"""How much of a turn greetings may take, and then one more."""


class Greetings:
    """The steps that wait."""

    __slots__ = ("_clock", "_loop", "_scheduled", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.perf_counter) -> None:
        self._loop, self._clock = loop, clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def soon(self, step: Callable[[], None]) -> None:
        """Do it now, if this turn has done none so far, else after those that wait."""
        if self._scheduled:
            self._waiting.append(step)
            return
        self._scheduled = True
        self._loop.call_soon(self._turn)
        step()

    def _turn(self) -> None:
        end = self._clock() + TURN_SECONDS
        try:
            while self._waiting and self._clock() < end:
                self._waiting.popleft()()
        finally:  # whatever one step does, others wait
            self._scheduled = bool(self._waiting)
            if self._scheduled:
                self._loop.call_soon(self._turn)
