"""Time on the event loop for what controllers and informers do by themselves.

They live on the loop that serves clients. Each lets others go on after a while, but when a cluster is loaded or a node
goes, forty controllers and as many informers have work in the same turn, and clients would wait for all of them. So
there are a few places in each turn, a millisecond each, and whoever wants one waits in line for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final

PLACES: Final = 8
SECONDS: Final = 0.001


class WorkTurns:
    """The places of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = perf_counter) -> None:
        self._loop, self._clock = loop, clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = 0
        """How many places are taken since a turn that is known to be over: at least those of this one."""

    async def begin(self) -> float:
        """Wait for a place; gives the time by which to ask for another. Time is ``perf_counter``'s."""
        if self._taken < PLACES:
            self._taken += 1
            if self._taken == 1:
                self._loop.call_soon(self._turn)
        else:
            place: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(place)
            await place
        return self._clock() + SECONDS

    def _turn(self) -> None:
        self._taken = 0
        while self._waiting and self._taken < PLACES:
            place = self._waiting.popleft()
            if not place.done():  # else nobody waits for it any more
                place.set_result(None)
                self._taken += 1
        if self._taken:
            self._loop.call_soon(self._turn)


class _OfThread(threading.local):
    """The places of the loop that a thread ran last."""

    found: tuple[asyncio.AbstractEventLoop, WorkTurns] | None = None


_here: Final = _OfThread()


def work_turns() -> WorkTurns:
    """Those of the running loop."""
    loop = asyncio.get_running_loop()
    if _here.found is None or _here.found[0] is not loop:
        _here.found = loop, WorkTurns(loop)
    return _here.found[1]
