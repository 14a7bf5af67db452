"""Pods that want a node: whose turn it is, who has to wait after a failure, and who waits for the cluster to change.

    add ──► active ──pop──► in flight ──bound──► gone
              ▲                 │ no node will do
              │ back-off over   ▼
            waiting ◄──move── unschedulable
                              (a change of the cluster that might help, or five minutes)

The pod of the highest priority goes first, among equals namespaces take turns (``line.py``). A change that comes while
a pod is in flight counts for it too: it is not put aside because of a cluster that has gone. Where nobody else wants a
node, pods need not wait for the end of their back-off, unless they failed on an error.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.machinery.alarms import Alarm
from pilothouse.simulation.scheduler.changes import EVERYTHING, Change
from pilothouse.simulation.scheduler.line import Key, Line
from pilothouse.simulation.scheduler.pod_info import PodInfo

_FIRST_BACKOFF: Final = 1.0
_MOST_BACKOFF: Final = 10.0
_MOST_DOUBLINGS: Final = 10
"""More make no difference, and thousands are beyond what fits into a float."""
_LONGEST_STAY: Final = 300.0


@dataclass(slots=True)
class _Waiting:
    """One pod: since when it waits for this try, how often it was tried, and what will bring it back."""

    pod: PodInfo
    added: float
    attempts: int = 0
    backoff_ends: float = 0.0
    alarm: Alarm | None = None
    seen: set[Change] = field(default_factory=set)
    """What has changed while it was tried."""
    helped_by: Set[Change] = EVERYTHING


class SchedulingQueue:
    """See the module's docstring. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[Key, _Waiting] = {}
        self._line = Line()
        self._unschedulable: dict[Change, dict[Key, None]] = {change: {} for change in Change}
        """Pods by what may help them."""
        self._in_flight: set[Key] = set()
        self._backing_off: dict[Key, float] = {}
        """Those that may go earlier if nobody else wants to, with the end of their back-off."""
        self._ends: list[tuple[float, Key]] = []
        """The same as a heap; some in it may have gone."""
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: PodInfo) -> None:
        """A pod came, or changed in a way that may help it."""
        waiting = self._pods.get(pod.key)
        if waiting is None or waiting.pod.uid != pod.uid:
            self.delete(pod.key)
            waiting = self._pods[pod.key] = _Waiting(pod, self._clock.monotonic())
        waiting.pod = pod
        if pod.key in self._in_flight:
            waiting.seen |= EVERYTHING
        elif self._is_unschedulable(pod.key):
            self._bring_back(pod.key)
        elif waiting.alarm is None:
            self._activate(pod.key)

    def refresh(self, pod: PodInfo) -> None:
        """A pod changed in a way that cannot help it."""
        waiting = self._pods.get(pod.key)
        if waiting is not None:
            waiting.pod = pod

    def delete(self, key: Key) -> None:
        """A pod went, or has its node."""
        waiting = self._pods.pop(key, None)
        if waiting is not None:
            self._take_back(key, waiting)
            if waiting.alarm is not None:
                waiting.alarm.cancel()
        self._line.discard(key)
        self._in_flight.discard(key)
        self._backing_off.pop(key, None)

    async def pop(self) -> PodInfo:
        """The pod whose turn it is; to be given back with ``put_aside`` if it finds no node, else ``delete``."""
        while True:
            key = self._line.pop()
            if key is not None:
                return self._take_off(key)
            if self._backing_off:
                self._end_back_off()
                continue
            self._added.clear()
            await self._added.wait()

    def _take_off(self, key: Key) -> PodInfo:
        self._in_flight.add(key)
        waiting = self._pods[key]
        waiting.attempts += 1
        waiting.seen.clear()
        return waiting.pod

    def _end_back_off(self) -> None:
        """Let the pod go whose back-off ends next."""
        ends, key = heapq.heappop(self._ends)
        if self._backing_off.get(key) != ends:
            return
        alarm = self._pods[key].alarm
        if alarm is not None:
            alarm.cancel()
        self._activate(key)

    def put_aside(self, key: Key, *, failed: bool = False, helped_by: Set[Change] = EVERYTHING) -> None:
        """No node will do for the pod unless something has changed, or its scheduling failed on an error."""
        if key not in self._in_flight:
            return
        self._in_flight.discard(key)
        waiting = self._pods[key]
        backoff = min(_MOST_BACKOFF, _FIRST_BACKOFF * 2 ** min(waiting.attempts - 1, _MOST_DOUBLINGS))
        waiting.added = self._clock.monotonic()  # those who came while it was tried are before it
        waiting.backoff_ends, waiting.helped_by = waiting.added + backoff, helped_by
        if failed:
            waiting.alarm = self._clock.delay(backoff, lambda: self._activate(key))
        elif not waiting.seen.isdisjoint(helped_by):
            self._wait(key, backoff)
        else:
            for change in helped_by:
                self._unschedulable[change][key] = None
            waiting.alarm = self._clock.delay(_LONGEST_STAY, lambda: self._bring_back(key))

    def move(self, change: Change) -> None:
        """The cluster changed: pods that this may help are tried again, each after its back-off."""
        for key in self._in_flight:
            self._pods[key].seen.add(change)
        for key in [*self._unschedulable[change]]:
            self._bring_back(key)

    def _is_unschedulable(self, key: Key) -> bool:
        return any(key in self._unschedulable[change] for change in self._pods[key].helped_by)

    def _take_back(self, key: Key, waiting: _Waiting) -> None:
        for change in waiting.helped_by:
            self._unschedulable[change].pop(key, None)

    def _bring_back(self, key: Key) -> None:
        waiting = self._pods[key]
        self._take_back(key, waiting)
        if waiting.alarm is not None:
            waiting.alarm.cancel()
            waiting.alarm = None
        self._wait(key, waiting.backoff_ends - self._clock.monotonic())

    def _wait(self, key: Key, seconds: float) -> None:
        if seconds <= 0:
            self._activate(key)
        else:
            self._pods[key].alarm = self._clock.delay(seconds, lambda: self._activate(key))
            self._backing_off[key] = self._pods[key].backoff_ends
            heapq.heappush(self._ends, (self._pods[key].backoff_ends, key))
            self._added.set()

    def _activate(self, key: Key) -> None:
        waiting = self._pods[key]
        waiting.alarm = None
        self._backing_off.pop(key, None)
        if key not in self._line:
            self._line.add(waiting.pod, waiting.added)
            self._added.set()
