"""Counting requests and their durations: plain dictionaries on the way, Prometheus' forms only for those who scrape."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

if TYPE_CHECKING:
    from prometheus_client import Metric

_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_LABELS: Final = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_NOWHERE: Final = frozenset({400, 401, 403, 404, 405})
Key = tuple[str, str, str, str, str, str]


class RequestMetrics:
    """``apiserver_request_total``, ``apiserver_request_duration_seconds`` and the requests in flight."""

    def __init__(self) -> None:
        self._counts: dict[tuple[Key, int], int] = {}
        self._durations: dict[Key, list[float]] = {}
        self.in_flight = {"readOnly": 0, "mutating": 0}

    def observe(self, key: Key, code: int, seconds: float) -> None:
        """One request is done. Paths that lead nowhere are counted together: clients can think of too many."""
        if code in _NOWHERE and key not in self._durations:
            key = (key[0], "", "", "", "", "")
        counted = (key, code)
        self._counts[counted] = self._counts.get(counted, 0) + 1
        durations = self._durations.get(key)
        if durations is None:
            durations = self._durations[key] = [0.0] * (len(_BUCKETS) + 2)
        durations[bisect_left(_BUCKETS, seconds)] += 1
        durations[-1] += seconds

    def collect(self) -> Iterator[Metric]:
        """What a scrape gets."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        total = CounterMetricFamily(
            "apiserver_request",
            "Requests by verb, resource, scope and HTTP code.",
            labels=(*_LABELS, "code"),
        )
        for (key, code), count in self._counts.items():
            total.add_metric((*_label_values(key), str(code)), count)
        yield total
        durations = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "Seconds from a request to its answer.", labels=_LABELS
        )
        for key, buckets in self._durations.items():
            cumulative = 0.0
            rows = []
            for bound, observed in zip((*map(str, _BUCKETS), "+Inf"), buckets[:-1], strict=True):
                cumulative += observed
                rows.append((bound, cumulative))
            durations.add_metric(_label_values(key), rows, buckets[-1])
        yield durations
        current = GaugeMetricFamily(
            "apiserver_current_inflight_requests", "Requests being served now.", labels=("request_kind",)
        )
        for kind, count in self.in_flight.items():
            current.add_metric((kind,), count)
        yield current


def _label_values(key: Key) -> tuple[str, ...]:
    verb, group, version, resource, subresource, scope = key
    return (verb, "", group, version, resource, subresource, scope, "apiserver")


_VERBS: Final = {"list": "LIST", "watch": "WATCH", "deletecollection": "DELETECOLLECTION"}


def with_instrumentation(following: Handler, metrics: RequestMetrics) -> Handler:
    """Measure every request that is served."""
    clock = time.perf_counter
    in_flight = metrics.in_flight

    async def handle(request: APIRequest) -> Response:
        started = clock()
        info = request.info
        kind = "readOnly" if request.method == "GET" else "mutating"
        in_flight[kind] += 1
        code = 500
        try:
            response = await following(request)
            code = response.status
            return response
        finally:
            in_flight[kind] -= 1
            scope = ""
            if info.is_resource:
                scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
            verb = _VERBS.get(info.verb) or request.method
            metrics.observe(
                (verb, info.group, info.version, info.resource, info.subresource, scope), code, clock() - started
            )

    return handle
