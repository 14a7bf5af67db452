"""Events of core v1, as the controller manager writes them.

    broadcaster = EventBroadcaster(client, supervisor)          one for each user that writes events
    recorder = broadcaster.recorder("replicaset-controller")
    recorder.event(replica_set, "Normal", "SuccessfulCreate", "Created pod: web-x7k2p")

Recording never waits and never fails: events queue up, at most a thousand, and are written in the background in their
order. An event that the server refuses is logged and forgotten; one that could not be delivered is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Final, Literal

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.event_correlation import Correlated, Correlator, event_name
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time

logger = logging.getLogger(__name__)
EventType = Literal["Normal", "Warning"]
_MOST_QUEUED: Final = 1000
_TRIES: Final = 12
_RETRY_SECONDS: Final = 10.0


def reference_to(obj: Object, kind: str = "", api_version: str = "") -> dict[str, Any]:
    """An ``ObjectReference``; kind and version are the object's own where it has them."""
    metadata = obj["metadata"]
    parts = {
        "kind": kind or obj.get("kind", ""),
        "namespace": metadata.get("namespace"),
        "name": metadata["name"],
        "uid": metadata.get("uid"),
        "apiVersion": api_version or obj.get("apiVersion", ""),
        "resourceVersion": metadata.get("resourceVersion"),
    }
    return {name: value for name, value in parts.items() if value}


class EventRecorder:
    """Speaks for one component."""

    def __init__(self, broadcaster: EventBroadcaster, component: str, host: str) -> None:
        self._broadcaster, self._component, self._host = broadcaster, component, host

    def event(
        self,
        about: Object,
        type: EventType,
        reason: str,
        message: str,
        *,
        kind: str = "",
        api_version: str = "",
        field_path: str = "",
        annotations: dict[str, str] | None = None,
    ) -> None:
        """Record something about an object, or a part of it. Objects without kind and apiVersion need these named."""
        clock = self._broadcaster.clock
        at, regarding = format_time(clock.now()), reference_to(about, kind, api_version)
        if field_path:
            regarding["fieldPath"] = field_path
        namespace = regarding.get("namespace") or "default"
        metadata: dict[str, Any] = {
            "name": event_name(regarding["name"], self._broadcaster.stamp()),
            "namespace": namespace,
        }
        if annotations:
            metadata["annotations"] = annotations
        source = {"component": self._component, **({"host": self._host} if self._host else {})}
        self._broadcaster.add(
            {
                "kind": "Event",
                "apiVersion": "v1",
                "metadata": metadata,
                "involvedObject": regarding,
                "reason": reason,
                "message": message,
                "source": source,
                "firstTimestamp": at,
                "lastTimestamp": at,
                "count": 1,
                "type": type,
                "reportingComponent": self._component,
                "reportingInstance": self._host,
            }
        )


class EventBroadcaster:
    """Writes the events of its recorders, one after the other."""

    def __init__(
        self,
        client: Client,
        supervisor: Supervisor,
        clock: Clock = SYSTEM,
        turns: contextlib.AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        """``turns`` is held while an event is written: broadcasters that share it do not all write at once."""
        self.clock = clock
        self._turns = turns or contextlib.nullcontext()
        self._events = client.of("", "v1", "events")
        self._supervisor = supervisor
        self._correlator = Correlator(clock)
        self._queue: asyncio.Queue[Object] = asyncio.Queue(_MOST_QUEUED)
        self._started = False
        self._stamp = 0

    def stamp(self) -> int:
        """The time in nanoseconds, never the same twice: events are named by it, and a clock may stand still."""
        self._stamp = max(self._stamp + 1, self.clock.time_ns())
        return self._stamp

    def recorder(self, component: str, host: str = "") -> EventRecorder:
        """What a component records its events with."""
        return EventRecorder(self, component, host)

    def add(self, event: Object) -> None:
        """Have an event written; dropped where too many wait. Writing begins with the first event.

        What is too much about one object never gets into the queue, so that it does not keep out what is not.
        """
        if not self._correlator.accepts(event):
            return
        if not self._started:
            self._started = True
            self._supervisor.run("event broadcaster", self._run)
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            logger.error("too many queued events, dropped: %s %s", event["reason"], event["message"])

    async def flush(self) -> None:
        """Return when all that was recorded so far has been dealt with."""
        await self._queue.join()

    async def _run(self) -> None:
        while True:
            event = await self._queue.get()
            try:
                async with self._turns:
                    await self._write(self._correlator.correlate(event))
            finally:
                self._queue.task_done()

    async def _write(self, correlated: Correlated) -> None:
        for attempt in range(_TRIES):
            try:
                stored = await self._write_once(correlated)
            except (errors.Timeout, errors.Unavailable, errors.TooManyRequests) as error:
                logger.warning("event is not written yet: %s", error.message)
                await self.clock.sleep(error.retry_after or (_RETRY_SECONDS if attempt else _RETRY_SECONDS / 2))
            except errors.StatusError as error:
                logger.log(_level_of(error), "event is refused: %s: %s", correlated.event["reason"], error.message)
                return
            else:
                self._correlator.written(correlated.key, stored)
                return
        logger.error("event is lost: %s %s", correlated.event["reason"], correlated.event["message"])

    async def _write_once(self, correlated: Correlated) -> Object:
        metadata = correlated.event["metadata"]
        if correlated.patch is not None:
            try:
                return await self._events.patch(metadata["namespace"], metadata["name"], correlated.patch, "strategic")
            except errors.NotFound:
                pass  # it has expired: it is written anew, with its count
        return await self._events.create(correlated.event)


def _level_of(error: errors.StatusError) -> int:
    """A namespace that goes away takes its events along; nobody need hear of that."""
    expected = errors.has_cause(error, "NamespaceTerminating")
    return logging.DEBUG if expected or isinstance(error, errors.AlreadyExists) else logging.ERROR
