"""Writing to many connections at once: all of them in a few turns of the loop, no task woken.

Whoever has something for a connection is due once, however much waits for it, so what happens in quick succession
leaves in one piece. A turn serves some dozens and leaves the rest to the next: however many are due, others get their
turns too.

A turn first asks everybody what to write and then writes. Asking and writing in alternation costs half as much again:
the code of encryption and network pushes the interpreter out of the processor's caches, and the other way round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

logger = logging.getLogger(__name__)

_SERVED_A_TURN: Final = 64  # about a millisecond over TLS
_BYTES_A_TURN: Final = 512 * 1024
_SLICES_A_TURN: Final = 8


class Writable(Protocol):
    """Where to write: a transport."""

    def write(self, data: bytes, /) -> object: ...


Outgoing = tuple[Writable, bytes]


class Due(Protocol):
    """What can be due: the delivery of one watch."""

    def outgoing(self) -> Outgoing | None:
        """Give away what waits. Raises nothing."""


class BodyTurns:
    """Long bodies on their way, a slice each in turn: a turn of the loop writes a few slices, whoever's they are.

    However many there are, what a turn takes is bounded, and short answers are written in between.
    """

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], object]] = deque()

    def call_soon(self, write: Callable[[], object]) -> None:
        """Write a slice in one of the next turns."""
        if not self._waiting:
            self._loop.call_soon(self._turn)
        self._waiting.append(write)

    def _turn(self) -> None:
        waiting = self._waiting
        for _ in range(min(len(waiting), _SLICES_A_TURN)):
            try:
                waiting[0]()
            finally:
                waiting.popleft()
        if waiting:
            self._loop.call_soon(self._turn)


class WriteTurns:
    """Those who are due, in the order in which they became so."""

    __slots__ = ("_due",)

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
        for _ in range(min(len(due), _SERVED_A_TURN)):
            outgoing = due.popleft().outgoing()
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
