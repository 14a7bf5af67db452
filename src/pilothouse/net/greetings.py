"""Work on connections that are being made, a little in each turn of the loop.

A step of a TLS handshake takes a millisecond of the processor, and anybody can ask for hundreds of them at once. The
loop would take them all in one turn, and whoever is connected already would wait for the end. Here they wait instead:
the first of a turn is done at once, so that a client that comes alone loses nothing, and what comes behind it is done
in the turns that follow, each for as long as nobody notices.

A handshake that has begun goes before those that have not, and none is begun while there is no room for it: when all
clients of a cluster come back at once, one after the other is let in, few handshakes are under way at any time, and
none is given up when it is nearly done. Otherwise addresses take turns, so that a crowd from one of them makes nobody
else wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_SECONDS: Final = 0.001
"""How much of a turn greetings may take, and then one more."""

Step = Callable[[], None]


class _Line:
    """Steps that wait: addresses take turns, and those of one address go in their order."""

    __slots__ = ("_of", "_turns")

    def __init__(self) -> None:
        self._of: dict[str, deque[Step]] = {}
        self._turns: deque[str] = deque()

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, step: Step, address: str) -> None:
        waiting = self._of.get(address)
        if waiting is None:
            waiting = self._of[address] = deque()
            self._turns.append(address)
        waiting.append(step)

    def take(self) -> Step:
        address = self._turns.popleft()
        waiting = self._of[address]
        step = waiting.popleft()
        if waiting:
            self._turns.append(address)
        else:
            del self._of[address]
        return step


class Greetings:
    """The steps that wait."""

    __slots__ = ("_begun", "_clock", "_first", "_has_room", "_loop", "_scheduled")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        has_room: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """While it ``has_room`` no more, nothing is begun; `resume` tells when it has again."""
        self._loop, self._has_room, self._clock = loop, has_room, clock
        self._begun, self._first = _Line(), _Line()
        self._scheduled = False

    def begin(self, step: Step, address: str) -> None:
        """Do the first step with a client now, if this turn has done none so far, else when its turn comes."""
        if self._scheduled or not self._has_room():
            self._first.add(step, address)
        else:
            self._now(step)

    def go_on(self, step: Step, address: str) -> None:
        """Do a further step, likewise."""
        if self._scheduled:
            self._begun.add(step, address)
        else:
            self._now(step)

    def resume(self) -> None:
        """There is room again."""
        if not self._scheduled:
            self._schedule()

    def _now(self, step: Step) -> None:
        self._scheduled = True
        self._loop.call_soon(self._turn)
        step()

    def _turn(self) -> None:
        end = self._clock() + TURN_SECONDS
        try:
            while (line := self._next()) is not None and self._clock() < end:
                line.take()()
        finally:  # whatever one step does, others wait
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = self._next() is not None
        if self._scheduled:
            self._loop.call_soon(self._turn)

    def _next(self) -> _Line | None:
        if self._begun:
            return self._begun
        return self._first if self._first and self._has_room() else None
