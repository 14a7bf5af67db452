"""Writing to many connections at once: all of them in a few turns of the loop, no task woken.

Whoever has something for a connection is due once, however much waits for it, so what happens in quick succession
leaves in one piece. A turn serves some dozens and leaves the rest to the next: however many are due, others get their
turns too. And when all are served, the next round begins only after as much time as the last one took: events for many
never take more than half of the loop, and what happened meanwhile leaves in one piece, which costs little more than one
event. There is no pause after a round for a few, which takes less than a millisecond.

    round for 200 watches      pause           next round, with all events since
    |■■■■■■■■ 2.4 ms ■■■■■■■■|  2.4 ms         |■■■■■■■■

A turn first asks everybody what to write and then writes. Asking and writing in alternation costs half as much again:
the code of encryption and network pushes the interpreter out of the processor's caches, and the other way round.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

logger = logging.getLogger(__name__)

_SERVED_A_TURN: Final = 64  # about a millisecond over TLS
_BYTES_A_TURN: Final = 512 * 1024
_SLICES_A_TURN: Final = 8
_SECONDS_A_TURN: Final = 0.004  # where slices are made as they are sent
_LONGEST_PAUSE: Final = 0.02
_TICK: Final = 0.001  # timers of the loop know no shorter time


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
        waiting, ends = self._waiting, perf_counter() + _SECONDS_A_TURN
        for _ in range(min(len(waiting), _SLICES_A_TURN)):
            try:
                waiting[0]()
            finally:
                waiting.popleft()
            if perf_counter() >= ends:
                break
        if waiting:
            self._loop.call_soon(self._turn)


class WriteTurns:
    """Those who are due, in the order in which they became so."""

    __slots__ = ("_clock", "_due", "_rested", "_taken")

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._due: deque[Due] = deque()
        self._taken = 0.0
        """Seconds that the turns of the present round took."""
        self._rested = 0.0
        """When the next round may begin."""

    def add(self, due: Due) -> None:
        """Serve in one of the next turns."""
        if not self._due:
            loop = asyncio.get_running_loop()
            if self._rested > loop.time() + _TICK:
                loop.call_at(self._rested, self._turn)
            else:
                loop.call_soon(self._turn)
        self._due.append(due)

    def _turn(self) -> None:
        began = self._clock()
        self._serve()
        self._taken += self._clock() - began
        if self._due:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._rested = asyncio.get_running_loop().time() + min(self._taken, _LONGEST_PAUSE)
            self._taken = 0.0

    def _serve(self) -> None:
        due, size = self._due, 0
        all_outgoing: list[Outgoing] = []
        for _ in range(min(len(due), _SERVED_A_TURN)):
            outgoing = due.popleft().outgoing()
            if outgoing is not None:
                all_outgoing.append(outgoing)
                size += len(outgoing[1])
                if size >= _BYTES_A_TURN:
                    break
        for transport, data in all_outgoing:
            try:
                transport.write(data)
            except Exception:
                logger.exception("an event could not be written")
