"""Requests of one turn of the loop leave together, unless one is alone.

Sent one by one, each wakes the server it goes to, which answers and goes to sleep again while we work on the next: both
sides find their caches cold each time, and on a busy machine each is stopped for the other. Sent in one go, the first
wakes the server and it finds the others waiting. A request that is alone leaves at once: there is nothing to wait for,
and a further step of the loop would cost more than it saves.
"""

from __future__ import annotations

import asyncio
from typing import Final

_MOST: Final = 32
"""So many leave together, and do not wait for the end of the turn."""


class Departures:
    """Of all connections of one client. A request whose connection is closed meanwhile does not leave."""

    __slots__ = ("_due", "_scheduled", "under_way")

    def __init__(self) -> None:
        self.under_way = 0
        """Requests that wait for the head of their answer, with those that are about to leave."""
        self._due: list[tuple[asyncio.Transport, bytes]] = []
        self._scheduled = False

    def send(self, transport: asyncio.Transport, request: bytes, loop: asyncio.AbstractEventLoop) -> None:
        """Send a whole request, which is counted already, now or at the end of the turn."""
        if self.under_way <= 1:
            transport.write(request)
            return
        self._due.append((transport, request))
        if len(self._due) >= _MOST:
            self._leave()
        elif not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._scheduled = False
        self._leave()

    def _leave(self) -> None:
        due, self._due = self._due, []
        for transport, request in due:
            if not transport.is_closing():
                transport.write(request)
