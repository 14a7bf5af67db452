"""Between events.k8s.io/v1 and the core/v1 form that events are kept in: the same facts under other names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pilothouse.machinery.objects import Object

_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_CORE_NAMES: Final = {core: own for own, core in _NAMES.items()}
_CORE_ALWAYS: Final = ("reportingComponent", "reportingInstance")


def to_core(obj: Object) -> Object:
    """The event as core/v1 has it."""
    made = {_NAMES.get(key, key): value for key, value in obj.items()}
    for key in _CORE_ALWAYS:
        made.setdefault(key, "")
    if "series" in made:
        made["series"] = {key: value for key, value in (made["series"] or {}).items() if value or key != "count"}
    return made


def from_core(obj: Object) -> Object:
    """The event as events.k8s.io/v1 has it."""
    made = {_CORE_NAMES.get(key, key): value for key, value in obj.items()}
    for key in ("reportingController", "reportingInstance"):
        if not made.get(key):
            made.pop(key, None)
    if "series" in made:
        series = made["series"] or {}
        made["series"] = {"count": series.get("count", 0), "lastObservedTime": series.get("lastObservedTime")}
    return made


CONVERTERS: dict[tuple[str, str], tuple[Callable[[Object], Object], Callable[[Object], Object]]] = {
    ("v1", "events"): (to_core, from_core),
}
