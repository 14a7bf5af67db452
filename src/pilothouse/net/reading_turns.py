"""Reading from many connections at once, for a while in each turn of the loop.

Whatever can be read is read in the turn in which the loop notices, and most requests are answered right there. Hundreds
of clients that all say something in one moment would so make one turn of a hundred milliseconds, and whoever comes
next would wait for its end. Here a turn reads for a few milliseconds; connections that come behind that wait, in their
order, for the turns that follow. In between the loop does what else there is to do.

Whoever has shown that it says little at a time does not wait behind a crowd of those that have not: it is read from at
once, for as long in each turn as the crowd is. So fifty connections with hundreds of requests each are no matter to a
client that asks for one thing after the other, be it one of many such clients.

A turn with few connections in it, as nearly all are, costs a counter and two looks at the clock for each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, Protocol

from pilothouse.net.loop_local import LoopLocal

TURN_SECONDS: Final = 0.002
"""For how long a crowd is read from in a turn, and then one more."""
FEW: Final = 16
"""So many are read from at once, unless one of them takes long."""
LONG_SECONDS: Final = 0.001
"""What one connection says may be a hundred requests: after so long it should `defer` the others."""
TRUSTED: Final = 4
"""After so many times that what it said was short a connection goes before a crowd."""
_MOST_CREDIT: Final = 64


class Late(Protocol):
    """What has more to say than its share."""

    def read_late(self) -> None:
        """Go on with what was read some turns ago."""


class Reader(Late, Protocol):
    """A connection that can be read from; late where it waited."""

    credit: int
    """How often it was read from in a short time lately; nothing at first, and kept here."""


class ReadingTurns:
    """The connections of one loop that wait to be read from."""

    __slots__ = ("_began", "_clock", "_count", "_deferred", "_ends", "_favoured", "_loop", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = perf_counter) -> None:
        self._loop, self._clock = loop, clock
        self._waiting: deque[Reader] = deque()
        self._deferred: deque[Late] = deque()
        """Those that have had their share, and more to say."""
        self._count = 0
        """How many came since a turn began that is known to have begun: that is, at least those of this one."""
        self._began = self._ends = 0.0
        self._favoured = 0.0
        """Seconds that those who are trusted have had before the crowd in this turn."""

    def admits(self, reader: Reader) -> bool:
        """Whether to read now, and then call ``has_read``; if not, ``read_late`` will be called in its turn."""
        self._began = self._clock()
        if self._count < FEW:
            self._count += 1
            if self._count == FEW:
                self._limit_turn()
            return True
        if not self._waiting and self._began < self._ends:
            return True
        if reader.credit >= TRUSTED and self._favoured < TURN_SECONDS:
            return True
        self._waiting.append(reader)
        return False

    def has_read(self, reader: Reader) -> None:
        """Note that the connection which was admitted has been read from."""
        taken = self._clock() - self._began
        if taken <= LONG_SECONDS:
            if reader.credit < _MOST_CREDIT:
                reader.credit += 1
        else:
            reader.credit //= 2
        if self._count == FEW:
            self._favoured += taken
        elif taken > LONG_SECONDS:
            self._count = FEW
            self._limit_turn()

    def defer(self, reader: Late) -> None:
        """Call ``read_late`` in a later turn, after those not read from yet: this one has said more than its share."""
        self._deferred.append(reader)
        if self._count < FEW:
            self._count = FEW
            self._limit_turn()

    def _limit_turn(self) -> None:
        self._ends = self._clock() + TURN_SECONDS
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        ends = self._clock() + TURN_SECONDS
        self._favoured = 0.0
        try:
            self._read(self._waiting, ends)
            self._read(self._deferred, ends)
        finally:  # whatever one connection does, others wait
            if self._waiting or self._deferred:
                self._loop.call_soon(self._turn)
            else:
                self._count = 0

    def _read(self, queue: deque[Reader] | deque[Late], ends: float) -> None:
        """Read from one at least, and from each once: whoever has more to say does so in the next turn."""
        for _ in range(len(queue)):
            queue.popleft().read_late()
            if self._clock() >= ends:
                break


turns_of: Final = LoopLocal(ReadingTurns).of
"""Those of a loop, which is the running one."""
