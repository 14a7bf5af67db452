"""What is counted about queues of work and about requests of the server to itself, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery.metrics import CollectedGauge, CollectedHistogram, Counter, Instrument
from pilothouse.machinery.observations import Observations

if TYPE_CHECKING:
    from pilothouse.controllers.runtime.work_queue import WorkQueue

QUEUE_BUCKETS: Final = (1e-8, 1e-7, 1e-6, 9.999999999999999e-6, 9.999999999999999e-5, 1e-3, 1e-2, 0.1, 1.0, 10.0)
LATENCY_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
QUEUES: Final[WeakSet[WorkQueue[Any]]] = WeakSet()
"""All queues that have a name."""
_VERBS: Final = {"list": "LIST", "watch": "WATCH"}
_SELF: Final = Counter(
    "apiserver_selfrequest_total",
    "[ALPHA] Requests of the server to itself.",
    ("verb", "group", "resource", "subresource"),
)


def count_selfrequest(request: APIRequest) -> None:
    """The server has asked itself; what is refused before it was read does not count."""
    info: RequestInfo | None = getattr(request, "info", None)
    if info is None:
        return
    verb = _VERBS.get(info.verb) or request.method
    _SELF.labelled(verb, info.group, info.resource, info.subresource).value += 1


def instruments() -> tuple[Instrument, ...]:
    """All of them."""
    return (
        _SELF,
        CollectedGauge("workqueue_depth", "[BETA] Keys that wait.", ("name",), _read(len)),
        CollectedGauge(
            "workqueue_adds_total", "[BETA] Keys added.", ("name",), _read(lambda queue: queue.adds), "counter"
        ),
        CollectedGauge(
            "workqueue_retries_total",
            "[BETA] Keys added again after a failure.",
            ("name",),
            _read(lambda queue: queue.retries),
            "counter",
        ),
        CollectedGauge(
            "workqueue_unfinished_work_seconds",
            "[BETA] Seconds of work under way, all together.",
            ("name",),
            _read(lambda queue: sum(queue.under_way())),
        ),
        CollectedGauge(
            "workqueue_longest_running_processor_seconds",
            "[BETA] Seconds that the longest work under way has taken.",
            ("name",),
            _read(lambda queue: max(queue.under_way(), default=0.0)),
            joined="most",
        ),
        CollectedHistogram(
            "workqueue_queue_duration_seconds",
            "[BETA] Seconds that keys waited.",
            ("name",),
            QUEUE_BUCKETS,
            lambda: _series(lambda queue: queue.waits),
        ),
        CollectedHistogram(
            "workqueue_work_duration_seconds",
            "[BETA] Seconds that work on keys took.",
            ("name",),
            QUEUE_BUCKETS,
            lambda: _series(lambda queue: queue.durations),
        ),
    )


def _by_name() -> dict[str, list[WorkQueue[Any]]]:
    """Several queues of one name are shown together: clusters of one process have the same controllers."""
    found: dict[str, list[WorkQueue[Any]]] = {}
    for queue in list(QUEUES):
        found.setdefault(queue.name, []).append(queue)
    return found


def _read(read: Callable[[WorkQueue[Any]], float]) -> Callable[[], Iterator[tuple[tuple[str, ...], float]]]:
    return lambda: (((name,), sum(map(read, queues))) for name, queues in _by_name().items())


def _series(read: Callable[[WorkQueue[Any]], Observations]) -> Iterator[tuple[tuple[str, ...], Observations]]:
    return (((name,), Observations.joined([*map(read, queues)])) for name, queues in _by_name().items())
