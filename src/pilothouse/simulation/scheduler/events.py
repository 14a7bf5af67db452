"""What the scheduler tells of pods, as events of events.k8s.io/v1.

The same thing said again within some minutes is one event with a series, as kube-scheduler's recorder has it. A series
is written when it begins, when its count has doubled, and every six minutes: a pod may be tried many times a second.
Recording never waits and never fails: events queue up, at most some thousands, and are written in the background: some
at once, those of one pod in their order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any, Final

from pilothouse.controllers.runtime.client import Client, ResourceClient
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.event_correlation import event_name
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_micro_time
from pilothouse.simulation.scheduler.pod_info import PodInfo

logger = logging.getLogger(__name__)
_WRITERS: Final = 4
_MOST_QUEUED: Final = 1000
"""For each of the writers."""
_SERIES_SECONDS: Final = 6 * 60.0
_MOST_NOTE: Final = 1024


class _Series:
    __slots__ = ("count", "event", "last", "told", "written")

    def __init__(self, event: Object, now: float) -> None:
        self.event, self.last, self.count = event, now, 1
        self.written, self.told = now, 1
        """When it was last written, and with which count."""

    def is_due(self, now: float) -> bool:
        """Whether there is enough that is not written."""
        return self.count >= 2 * self.told or now - self.written >= _SERIES_SECONDS


class SchedulingEvents:
    """Writes the events of one scheduler."""

    def __init__(self, client: Client, supervisor: Supervisor, clock: Clock, instance: str) -> None:
        self._clock, self._instance = clock, instance
        events = client.of("events.k8s.io", "v1", "events")
        self._writers = [_Writer(events, clock) for _ in range(_WRITERS)]
        for writer in self._writers:
            supervisor.run("scheduling events", writer.run)

    def record(
        self, pod: PodInfo, type: str, reason: str, action: str, note: str, related: PodInfo | None = None
    ) -> None:
        """Tell something of a pod, and of another that it has to do with."""
        if len(note) > _MOST_NOTE:
            note = f"{note[: _MOST_NOTE - 4]} ..."
        event: Object = {
            "metadata": {"name": event_name(pod.name, self._clock.time_ns()), "namespace": pod.namespace},
            "eventTime": format_micro_time(self._clock.now()),
            "reportingController": pod.scheduler,
            "reportingInstance": f"{pod.scheduler}-{self._instance}",
            "action": action,
            "reason": reason,
            "regarding": _reference(pod),
            "note": note,
            "type": type,
        }
        if related is not None:
            event["related"] = _reference(related)
        self._writers[hash(pod.uid) % _WRITERS].add((pod.uid, type, reason, action, note), event)


class _Writer:
    """Writes the events of some pods, one after the other."""

    def __init__(self, events: ResourceClient, clock: Clock) -> None:
        self._events, self._clock = events, clock
        self._queue: asyncio.Queue[tuple[tuple[str, ...], Object]] = asyncio.Queue(_MOST_QUEUED)
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()

    def add(self, key: tuple[str, ...], event: Object) -> None:
        try:
            self._queue.put_nowait((key, event))
        except asyncio.QueueFull:
            logger.error("too many queued events, dropped: %s %s", event["reason"], event["note"])

    async def run(self) -> None:
        while True:
            key, event = await self._queue.get()
            try:
                await self._write(key, event)
            except errors.StatusError as error:
                logger.info(
                    "event %s of pod %s is lost: %s", event["reason"], event["regarding"]["name"], error.message
                )
            finally:
                self._queue.task_done()

    async def _write(self, key: tuple[str, ...], event: Object) -> None:
        now = self._clock.monotonic()
        self._forget_old(now)
        known = self._series.get(key)
        if known is None:
            self._series[key] = _Series(await self._events.create(event), now)
            return
        self._series.move_to_end(key)
        known.count, known.last = known.count + 1, now
        if not known.is_due(now):
            return
        known.written, known.told = now, known.count
        series = {"count": known.count, "lastObservedTime": event["eventTime"]}
        metadata = known.event["metadata"]
        try:
            await self._events.patch(metadata["namespace"], metadata["name"], {"series": series})
        except errors.NotFound:
            known.event = await self._events.create(event)

    def _forget_old(self, now: float) -> None:
        """Forget series that have ended. The one that was longest ago is always the first."""
        while self._series:
            oldest = next(iter(self._series))
            if now - self._series[oldest].last < _SERIES_SECONDS:
                return
            del self._series[oldest]


def _reference(pod: PodInfo) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "resourceVersion": pod.pod["metadata"]["resourceVersion"],
    }
