"""Looking for input a moment longer before going to sleep, where some is expected at once.

A loop that sleeps has to be woken: by the kernel, on a processor that may sleep as well, and on virtual machines with
the help of the host. A client that asks for one thing after the other, or an etcd on the same machine, answers sooner
than that takes. So whoever has said something that is likely to be answered at once tells this, and for a fraction of
a millisecond the loop looks for input without sleeping. If it comes in that time, this costs no more processor time
than falling asleep and waking up.

If it does not, because the peer is far, idle or busy, the time is wasted. So after each look in vain twice as many
expectations as before go by without one, until there is a look for one in a thousand; a look that finds something
begins that count anew. Where there is one processor, the peer needs it, and nothing is looked for. And where others
want the processors, the scheduler takes them from those who always have something to do and gives them to those who
slept: a loop that is interrupted more than once in each look sleeps as usual for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from pilothouse.net.processors import interruptions as interruptions_here
from pilothouse.net.processors import processors as processors_here

CLIENT_SECONDS: Final = 0.0001
"""What a client takes that reads an answer and asks for the next thing."""
SERVER_SECONDS: Final = 0.00025
"""What a server on this machine takes to look something up or to change it."""
MOST_UNHEEDED: Final = 1024
"""How many expectations go by without a look, at most."""
LOOKS: Final = 16
"""After so many looks it is counted how often others took the processor."""
CROWDED_UNHEEDED: Final = 256
"""How many expectations go by where that was often."""


class BusyPolling:
    """Looks for one kind of input: looks for the same kind tend to be all worthwhile, or all in vain."""

    __slots__ = (
        "_clock",
        "_interrupted",
        "_interruptions",
        "_is_looking",
        "_is_of_use",
        "_left",
        "_next_unheeded",
        "_seconds",
        "_soon",
        "_unheeded",
        "_until",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        processors: int | None = None,
        clock: Callable[[], float] = perf_counter,
        interruptions: Callable[[], int] = interruptions_here,
    ) -> None:
        """``seconds``: for how long to look. ``processors``: how many there are for this process and its peers."""
        self._soon, self._seconds, self._clock = loop.call_soon, seconds, clock
        self._interruptions = interruptions
        self._interrupted = -1
        """How often this thread had been interrupted when that was counted last; -1 when that was too often."""
        self._left = 0
        """After how many looks it is counted again."""
        self._is_of_use = (processors_here() if processors is None else processors) > 1
        self._is_looking = False
        self._until = 0.0
        """When the look is over; 0 when nothing is expected."""
        self._unheeded = 0
        """How many expectations are to go by."""
        self._next_unheeded = 1

    def expect(self) -> None:
        """Something was said that is likely to be answered at once."""
        if self._unheeded:
            self._unheeded -= 1
        elif self._is_of_use and (self._left or self._is_left_alone()):
            self._left -= 1
            self._until = self._clock() + self._seconds
            if not self._is_looking:
                self._is_looking = True
                self._soon(self._look)

    def came(self) -> None:
        """There was input."""
        if self._until:
            self._until = 0.0
            self._next_unheeded = 1

    def _is_left_alone(self) -> bool:
        """Whether others took the processor in few of the last looks."""
        before, now = self._interrupted, self._interruptions()
        if 0 <= before < now - LOOKS:
            self._interrupted, self._unheeded = -1, CROWDED_UNHEEDED
            return False
        self._interrupted, self._left = now, LOOKS
        return True

    def _look(self) -> None:
        """Called in each turn of a look: a loop that has something to call does not sleep."""
        until = self._until
        if not until:
            self._is_looking = False
        elif self._clock() < until:
            self._soon(self._look)
        else:
            self._is_looking = False
            self._until = 0.0
            self._unheeded = self._next_unheeded
            self._next_unheeded = min(2 * self._next_unheeded, MOST_UNHEEDED)
