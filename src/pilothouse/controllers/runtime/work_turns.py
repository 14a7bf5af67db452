"""Time on the event loop for what controllers and informers do by themselves.

They live on the loop that serves clients. Each lets others go on after a while, but when a cluster is loaded or a node
goes, forty controllers and as many informers have work in the same turn, and clients would wait for all of them. So
there are a few places in each turn, a millisecond each, and whoever wants one waits in line for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from time import perf_counter
from typing import Final

from pilothouse.controllers.runtime.places import Places

PLACES: Final = 8
SECONDS: Final = 0.001


class WorkTurns:
    """The places of one loop."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._places, self._clock = Places(PLACES), clock

    async def begin(self) -> float:
        """Wait for a place; gives the time by which to ask for another. Time is ``perf_counter``'s."""
        await self._places.take()
        return self._clock() + SECONDS


class _OfThread(threading.local):
    """The places of the loop that a thread ran last."""

    found: tuple[asyncio.AbstractEventLoop, WorkTurns] | None = None


_here: Final = _OfThread()


def work_turns() -> WorkTurns:
    """Those of the running loop."""
    loop = asyncio.get_running_loop()
    if _here.found is None or _here.found[0] is not loop:
        _here.found = loop, WorkTurns()
    return _here.found[1]
