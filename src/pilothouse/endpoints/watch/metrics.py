"""What is counted about events on their way to clients, in this process."""

from __future__ import annotations

from typing import Final

from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery.metrics import Histogram, Instrument, counted_durations, doubling_buckets
from pilothouse.machinery.observations import Observations

_LABELS: Final = ("group", "version", "resource")
_SIZES: Final = Histogram(
    "apiserver_watch_events_sizes", "[BETA] Bytes of events sent to clients.", _LABELS, doubling_buckets(1024, 8)
)
_LISTS: Final = Histogram(
    "apiserver_watch_list_duration_seconds",
    "[BETA] Seconds until a watch had sent all objects it begins with.",
    (*_LABELS, "scope"),
    (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300),
)


def sent_events(info: RequestInfo) -> Observations:
    """The sizes of the events of a watch are observed here."""
    return _SIZES.labelled(info.group, info.version, info.resource)


def initial_events(info: RequestInfo) -> Observations:
    """How long a watch took to send the objects it begins with is observed here."""
    scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
    return _LISTS.labelled(info.group, info.version, info.resource, scope)


def instruments() -> tuple[Instrument, ...]:
    """All of them."""
    total = counted_durations("apiserver_watch_events_total", "[BETA] Events sent to clients.", _LABELS, _SIZES)
    return _SIZES, total, _LISTS
