"""A number of places in each turn of the event loop, and a line for those who find none.

What many do in the same turn holds up everybody else until all of them are done. With places a few begin, and the
others wait in their order for the turns that follow; what else there is to do comes in between.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Places:
    """So many in a turn of the loop that runs when they are asked for."""

    __slots__ = ("_count", "_taken", "_waiting")

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = 0
        """How many are taken since a turn that is known to be over: at least those of this one."""

    async def take(self) -> None:
        """Return when there is a place: at once where there are some left."""
        if self._taken < self._count:
            self._taken += 1
            if self._taken == self._count:
                asyncio.get_running_loop().call_soon(self._turn)
        else:
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place

    def _turn(self) -> None:
        self._taken = 0
        while self._waiting and self._taken < self._count:
            place = self._waiting.popleft()
            if not place.done():  # else nobody waits for it any more
                place.set_result(None)
                self._taken += 1
        if self._taken == self._count:
            asyncio.get_running_loop().call_soon(self._turn)
