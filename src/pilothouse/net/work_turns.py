"""Time on the event loop for what takes long: the work of controllers and informers, and long requests.

All live on one loop. Each lets others go on after a while, but when a cluster is loaded or a node goes, forty
controllers and as many informers have work in the same turn, and a set of ten thousand pods wakes a thousand tasks that
all have a call to make; when a server comes back, dozens of clients ask for all pods at once: everybody else would wait
for the end of all of it. So there are a few places in each turn, for calls and for work alike, and none once those who
had one have taken their time; who finds none waits in line for the turns that follow, in which there is a place for one
at least; namespaces take turns in that line. What else there is to do comes in between. Requests have places of
their own, so that neither they nor what the server does by itself waits for the other.

    turn 1   a 0.3 ms  b 0.2 ms  c 5 ms │ the time is over; d and e, who come in this turn, wait
    turn 2   (clients)  d 0.4 ms  e 0.1 ms  …
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import Final, Protocol

from pilothouse.net.fair_lines import FairLines
from pilothouse.net.loop_local import LoopLocal

PLACES: Final = 8
"""So many in a turn."""
SECONDS: Final = 0.001
"""Who has more work than this asks for another place."""
TURN_SECONDS: Final = 0.004
"""No place is given in a turn in which others have taken so long."""


class _Waiting(Protocol):
    """A task or a call in line. It finds out for itself whether those before it have left a place."""

    def wake(self) -> None:
        """Look in the next turn."""


class WorkTurns:
    """The places of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = perf_counter) -> None:
        self._loop, self._clock = loop, clock
        self._line = FairLines[_Waiting]()
        self._taken = 0
        """In this turn, or in the one before if that is not known to be over."""
        self._ends = 0.0
        self._is_watching = False
        """Whether the next turn will be noticed: while a place is taken or somebody waits."""

    async def begin(self, owner: str = "") -> float:
        """Wait for a place; gives the time by which to ask for another. Time is ``perf_counter``'s."""
        await self.take(owner)
        return self._clock() + SECONDS

    async def take(self, owner: str = "") -> None:
        """Return when there is a place: at once where there is one and nobody waits."""
        if self._line or not self._enter():
            waiting = _Task(self._loop)
            self._line.add(waiting, owner)
            try:
                await waiting.look()
                while not self._enter():
                    await waiting.look()
            finally:
                self._line.remove(waiting, owner)

    def call(self, work: Callable[[], None]) -> None:
        """Call ``work`` in a turn to come, when there is a place."""
        self._line.add(_Call(self._loop, work, self._admit), "")
        self._watch()

    def _admit(self, waiting: _Waiting) -> bool:
        if not self._enter():
            return False
        self._line.remove(waiting, "")
        return True

    def _enter(self) -> bool:
        """Take a place if there is one."""
        if not self._taken:
            self._ends = self._clock() + TURN_SECONDS
            self._watch()
        elif self._taken == PLACES or self._clock() >= self._ends:
            return False
        self._taken += 1
        return True

    def _watch(self) -> None:
        if not self._is_watching:
            self._is_watching = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """All places are free. Those who are woken come before this is called again."""
        self._taken, self._is_watching = 0, False
        for waiting in islice(self._line, PLACES):
            waiting.wake()
        if self._line:
            self._watch()


class _Task:
    """A task in line."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._woken = loop, loop.create_future()

    async def look(self) -> None:
        await self._woken
        self._woken = self._loop.create_future()

    def wake(self) -> None:
        if not self._woken.done():  # else it has been woken, or nobody waits any more
            self._woken.set_result(None)


class _Call:
    """A call in line."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[], None], admit: Callable[[_Waiting], bool]
    ) -> None:
        self._loop, self._work, self._admit = loop, work, admit

    def wake(self) -> None:
        self._loop.call_soon(self._look)

    def _look(self) -> None:
        if self._admit(self):
            self._work()


_work_turns: Final = LoopLocal(WorkTurns)
_request_turns: Final = LoopLocal(WorkTurns)


def work_turns() -> WorkTurns:
    """Those of the running loop for what the server does by itself."""
    return _work_turns.of(asyncio.get_running_loop())


def request_turns() -> WorkTurns:
    """Those of the running loop for long requests."""
    return _request_turns.of(asyncio.get_running_loop())
