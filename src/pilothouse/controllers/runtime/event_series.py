"""Events of events.k8s.io, whose repetitions are a series: what kube-apiserver's own controllers write.

The same thing said again within some minutes is one event with a series, so that an error which stays does not fill the
store. What cannot be recorded is logged: an event is never a reason for its cause to fail.
"""

from __future__ import annotations

import logging
import socket
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.controllers.own_objects import create, update
from pilothouse.controllers.runtime.event_correlation import event_name
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.times import format_micro_time, now_instant
from pilothouse.registry.store.store import Store

logger = logging.getLogger(__name__)
_SERIES_SECONDS: Final = 6 * 60


class _Recorded:
    """An event that may yet become a series."""

    __slots__ = ("count", "last", "name", "namespace")

    def __init__(self, namespace: str, name: str, last: int) -> None:
        self.namespace, self.name, self.last, self.count = namespace, name, last, 1


class SeriesRecorder:
    """Records what one controller has to say, in the store of events.k8s.io."""

    def __init__(self, events: Store, controller: str) -> None:
        self._events = events
        self._controller = controller
        self._instance = f"{controller}-{socket.gethostname()}"
        self._recorded: dict[tuple[str, ...], _Recorded] = {}

    async def warn(self, about: Object, kind: str, version: str, reason: str, action: str, note: str) -> None:
        """Write an event of type Warning about an object of a kind and version."""
        key = (kind, about["metadata"].get("namespace", ""), about["metadata"]["name"], reason, action, note)
        try:
            await self._record(key, about, version)
        except errors.StatusError as error:
            logger.warning("event %s about %s %s/%s is lost: %s", reason, kind, key[1], key[2], error.message)

    async def _record(self, key: tuple[str, ...], about: Object, version: str) -> None:
        instant = now_instant()
        since = instant.seconds - _SERIES_SECONDS
        self._recorded = {known: each for known, each in self._recorded.items() if each.last > since}
        known = self._recorded.get(key)
        at = format_micro_time(instant)
        if known is not None:
            known.count, known.last = known.count + 1, instant.seconds
            if await update(self._events, known.namespace, known.name, lambda event: _repeat(event, known.count, at)):
                return
        nanos = instant.seconds * 1_000_000_000 + instant.nanos
        event = self._event(key, about, version, at, nanos)
        metadata = event["metadata"]
        await create(self._events, event)
        self._recorded[key] = _Recorded(metadata["namespace"], metadata["name"], instant.seconds)

    def _event(self, key: tuple[str, ...], about: Object, version: str, at: str, nanos: int) -> Object:
        kind, namespace, name, reason, action, note = key
        metadata = about["metadata"]
        reference = {"kind": kind, "namespace": namespace, "name": name, "apiVersion": version}
        reference |= {part: metadata[part] for part in ("uid", "resourceVersion") if metadata.get(part)}
        raw: dict[str, Any] = {
            "metadata": {"name": event_name(name, nanos)},
            "involvedObject": reference,
            "reason": reason,
            "message": note,
            "type": "Warning",
            "eventTime": at,
            "action": action,
            "reportingComponent": self._controller,
            "reportingInstance": self._instance,
        }
        raw["metadata"]["namespace"] = namespace or "default"
        event, _ = decode(types.struct("core.v1.Event"), raw)
        return event


def _repeat(event: Object, count: int, at: str) -> Object:
    event["series"] = {"count": count, "lastObservedTime": at}
    return event
