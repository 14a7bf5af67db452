"""What becomes of an event before it is written: left out, combined with others, or counted onto an earlier one.

    spam filter   a source may say 25 things about an object, and one more every five minutes
    aggregation   ten messages for one reason within ten minutes become one "(combined from similar events)"
    counting      the same event again is a patch that raises the count of the first

The numbers are client-go's, so that a cluster's events look as they always did.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pilothouse.apis.object_names import name_is_dns_subdomain
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import format_time

V = TypeVar("V")
_MOST: Final = 4096
_BURST: Final = 25
_REFILL_SECONDS: Final = 300.0
_COMBINED_AFTER: Final = 10
_COMBINED_SECONDS: Final = 600.0
COMBINED: Final = "(combined from similar events): "


def event_name(about: str, nanos: int) -> str:
    """The name of an event about an object; a uuid where the object's own cannot be part of one."""
    name = f"{about}.{nanos:x}"
    return str(uuid.uuid4()) if name_is_dns_subdomain(name, False) else name


class Correlated(NamedTuple):
    """What to write: the event, and with a patch, how to change the one that is there instead."""

    event: Object
    patch: Object | None
    key: Hashable


class _Recent(Generic[V]):
    """The values of the keys that were last used."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Hashable, value: V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > _MOST:
            self._values.popitem(last=False)


class _Observed(NamedTuple):
    times: int
    first: str
    name: str


class Correlator:
    """What one source has said lately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: _Recent[tuple[float, float]] = _Recent()
        self._messages: _Recent[tuple[set[str], float]] = _Recent()
        self._observed: _Recent[_Observed] = _Recent()

    def accepts(self, event: Object) -> bool:
        """Whether the source may say this: not where it has said too much about the object already."""
        about = _about(event)
        now = self._clock.monotonic()
        tokens, at = self._tokens.get(about) or (float(_BURST), now)
        tokens = min(float(_BURST), tokens + (now - at) / _REFILL_SECONDS)
        accepted = tokens >= 1.0
        self._tokens.put(about, (tokens - 1.0 if accepted else tokens, now))
        return accepted

    def correlate(self, event: Object) -> Correlated:
        """What to write of an event that was accepted."""
        event, key = self._aggregate(event, _about(event))
        known = self._observed.get(key)
        if known is None:
            self._observed.put(key, _Observed(1, event["firstTimestamp"], event["metadata"]["name"]))
            return Correlated(event, None, key)
        count = known.times + 1
        self._observed.put(key, known._replace(times=count))
        patch = {"count": count, "lastTimestamp": event["lastTimestamp"], "message": event["message"]}
        metadata = {**event["metadata"], "name": known.name}
        counted = {**event, "metadata": metadata, "count": count, "firstTimestamp": known.first}
        return Correlated(counted, patch, key)

    def written(self, key: Hashable, event: Object) -> None:
        """Take over what the server says it has stored."""
        self._observed.put(key, _Observed(event.get("count") or 1, event["firstTimestamp"], event["metadata"]["name"]))

    def _aggregate(self, event: Object, about: tuple[Any, ...]) -> tuple[Object, Hashable]:
        similar = (*about, event["reason"])
        now = self._clock.monotonic()
        messages, at = self._messages.get(similar) or (set(), now)
        if now - at > _COMBINED_SECONDS:
            messages = set()
        messages.add(event["message"])
        self._messages.put(similar, (messages, now))
        if len(messages) < _COMBINED_AFTER:
            return event, (*similar, event["involvedObject"].get("fieldPath"), event["message"])
        messages.pop()
        at_text = format_time(self._clock.now())
        name = event_name(event["involvedObject"]["name"], self._clock.time_ns())
        combined = {
            **event,
            "metadata": {"name": name, "namespace": event["metadata"]["namespace"]},
            "message": COMBINED + event["message"],
            "firstTimestamp": at_text,
            "lastTimestamp": at_text,
        }
        return combined, similar


def _about(event: Object) -> tuple[Any, ...]:
    """Who speaks about which object, and how seriously; which part of it is meant makes no difference."""
    source, regarding = event["source"], event["involvedObject"]
    parts = ("kind", "namespace", "name", "uid", "apiVersion")
    return (source["component"], source.get("host"), event["type"], *(regarding.get(part) for part in parts))
