"""Handing events to watchers whose consumers take them by call: all of them in a few turns of the loop, no task woken.

A watcher is due once, however many events wait in it, so what happens in quick succession leaves in one piece. A turn
serves some dozens and leaves the rest to the next: however many watch, others get their turns too.

A turn first asks everybody what to write and then writes. Asking and writing in alternation costs half as much again:
the code of encryption and network pushes the interpreter out of the processor's caches, and the other way round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

logger = logging.getLogger(__name__)

_WATCHERS_A_TURN: Final = 64  # about a millisecond over TLS
_BYTES_A_TURN: Final = 512 * 1024


class Writable(Protocol):
    """Where to write: a transport."""

    def write(self, data: bytes, /) -> object: ...


Outgoing = tuple[Writable, bytes]


class Due(Protocol):
    """What can be due: a watcher."""

    def deliver(self) -> Outgoing | None:
        """Give away what waits. Raises nothing."""


class Deliveries:
    """Those who are due, in the order in which they became so."""

    def __init__(self) -> None:
        self._due: deque[Due] = deque()

    def add(self, due: Due) -> None:
        """Serve in one of the next turns."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._turn)
        self._due.append(due)

    def _turn(self) -> None:
        due, size = self._due, 0
        all_outgoing: list[Outgoing] = []
        for _ in range(min(len(due), _WATCHERS_A_TURN)):
            outgoing = due.popleft().deliver()
            if outgoing is not None:
                all_outgoing.append(outgoing)
                size += len(outgoing[1])
                if size >= _BYTES_A_TURN:
                    break
        if due:
            asyncio.get_running_loop().call_soon(self._turn)
        for transport, data in all_outgoing:
            try:
                transport.write(data)
            except Exception:
                logger.exception("an event could not be written")
