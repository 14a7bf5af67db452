"""Pods that want a node: whose turn it is, who has to wait after a failure, and who waits for the cluster to change.

    add ──► active ──pop──► in flight ──bound──► gone
              ▲                 │ no node will do
              │ back-off over   ▼
            waiting ◄──move── unschedulable
                              (a change of the cluster that might help, or five minutes)

The pod of the highest priority goes first, among equals the one that came first; but namespaces with pods of the same
priority take turns, so that one with thousands of them does not keep the others from their nodes. A change that comes
while a pod is in flight counts for it too: it is not put aside because of a cluster that has gone. Where nobody else
wants a node, pods need not wait for the end of their back-off, unless they failed on an error.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.machinery.alarms import Alarm
from pilothouse.simulation.scheduler.pod_info import PodInfo

_FIRST_BACKOFF: Final = 1.0
_MOST_BACKOFF: Final = 10.0
_MOST_DOUBLINGS: Final = 10
"""More make no difference, and thousands are beyond what fits into a float."""
_LONGEST_STAY: Final = 300.0
Key = tuple[str, str]
Concerns = Callable[[PodInfo], bool]


@dataclass(slots=True)
class _Waiting:
    """One pod: since when it is here, how often it was tried, and what will bring it back."""

    pod: PodInfo
    added: float
    attempts: int = 0
    backoff_ends: float = 0.0
    alarm: Alarm | None = None
    moves_seen: int = 0


class SchedulingQueue:
    """See the module's docstring. Belongs to one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[Key, _Waiting] = {}
        self._active: dict[int, dict[str, list[tuple[float, int, Key]]]] = {}
        """By priority and namespace, of which the one whose turn it is comes first."""
        self._active_keys: set[Key] = set()
        self._unschedulable: set[Key] = set()
        self._in_flight: set[Key] = set()
        self._backing_off: dict[Key, None] = {}
        """Those that may go earlier if nobody else wants to, in the order in which they came."""
        self._moves = 0
        self._sequence = 0
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
            self._moves += 1
        elif pod.key in self._unschedulable:
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
        if waiting is not None and waiting.alarm is not None:
            waiting.alarm.cancel()
        self._active_keys.discard(key)
        self._unschedulable.discard(key)
        self._in_flight.discard(key)
        self._backing_off.pop(key, None)

    async def pop(self) -> PodInfo:
        """The pod whose turn it is; to be given back with ``put_aside`` if it finds no node, else ``delete``."""
        while True:
            while self._active:
                key = self._next_active()
                if key in self._active_keys:
                    return self._take_off(key)
            if self._backing_off:
                self._end_back_off()
                continue
            self._added.clear()
            await self._added.wait()

    def _next_active(self) -> Key:
        """Whose turn it is; some have gone meanwhile."""
        priority = max(self._active)
        namespaces = self._active[priority]
        namespace = next(iter(namespaces))
        pods = namespaces.pop(namespace)
        _, _, key = heapq.heappop(pods)
        if pods:
            namespaces[namespace] = pods
        elif not namespaces:
            del self._active[priority]
        return key

    def _take_off(self, key: Key) -> PodInfo:
        self._active_keys.discard(key)
        self._in_flight.add(key)
        waiting = self._pods[key]
        waiting.attempts += 1
        waiting.moves_seen = self._moves
        return waiting.pod

    def _end_back_off(self) -> None:
        """Let the pod go whose back-off ends next."""
        key = min(self._backing_off, key=lambda each: self._pods[each].backoff_ends)
        alarm = self._pods[key].alarm
        if alarm is not None:
            alarm.cancel()
        self._activate(key)

    def put_aside(self, key: Key, *, failed: bool = False) -> None:
        """No node will do for the pod as things are, or its scheduling failed on an error."""
        if key not in self._in_flight:
            return
        self._in_flight.discard(key)
        waiting = self._pods[key]
        backoff = min(_MOST_BACKOFF, _FIRST_BACKOFF * 2 ** min(waiting.attempts - 1, _MOST_DOUBLINGS))
        waiting.backoff_ends = self._clock.monotonic() + backoff
        if failed:
            waiting.alarm = self._clock.delay(backoff, lambda: self._activate(key))
        elif waiting.moves_seen != self._moves:
            self._wait(key, backoff)
        else:
            self._unschedulable.add(key)
            waiting.alarm = self._clock.delay(_LONGEST_STAY, lambda: self._bring_back(key))

    def move(self, concerns: Concerns = lambda pod: True) -> None:
        """The cluster changed: pods that this may help are tried again, each after its back-off."""
        self._moves += 1
        for key in [key for key in self._unschedulable if concerns(self._pods[key].pod)]:
            self._bring_back(key)

    def _bring_back(self, key: Key) -> None:
        waiting = self._pods[key]
        self._unschedulable.discard(key)
        if waiting.alarm is not None:
            waiting.alarm.cancel()
            waiting.alarm = None
        self._wait(key, waiting.backoff_ends - self._clock.monotonic())

    def _wait(self, key: Key, seconds: float) -> None:
        if seconds <= 0:
            self._activate(key)
        else:
            self._pods[key].alarm = self._clock.delay(seconds, lambda: self._activate(key))
            self._backing_off[key] = None
            self._added.set()

    def _activate(self, key: Key) -> None:
        waiting = self._pods[key]
        waiting.alarm = None
        self._backing_off.pop(key, None)
        if key in self._active_keys:
            return
        self._sequence += 1
        self._active_keys.add(key)
        pods = self._active.setdefault(waiting.pod.priority, {}).setdefault(key[0], [])
        heapq.heappush(pods, (waiting.added, self._sequence, key))
        self._added.set()
