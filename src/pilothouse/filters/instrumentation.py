"""Counting requests and their durations."""

from __future__ import annotations

import time
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery.metrics import Counter, Gauge, Histogram, Instrument, Observations, Value
from pilothouse.net.messages import Response

_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_LABELS: Final = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_NOWHERE: Final = frozenset({400, 401, 403, 404, 405})
Key = tuple[str, str, str, str, str, str]


class RequestMetrics:
    """``apiserver_request_total``, ``apiserver_request_duration_seconds`` and the requests in flight."""

    def __init__(self) -> None:
        self._total = Counter(
            "apiserver_request_total", "[STABLE] Requests by verb, resource, scope and HTTP code.", (*_LABELS, "code")
        )
        self._seconds = Histogram(
            "apiserver_request_duration_seconds",
            "[STABLE] Seconds from a request to its answer.",
            _LABELS,
            _BUCKETS,
        )
        self._current = Gauge(
            "apiserver_current_inflight_requests", "[STABLE] Requests being served now.", ("request_kind",)
        )
        self._counts: dict[tuple[Key, int], Value] = {}
        self._durations: dict[Key, Observations] = {}
        self.in_flight = {kind: self._current.labelled(kind) for kind in ("readOnly", "mutating")}

    def observe(self, key: Key, code: int, seconds: float) -> None:
        """One request is done. Paths that lead nowhere are counted together: clients can think of too many."""
        if code in _NOWHERE and key not in self._durations:
            key = (key[0], "", "", "", "", "")
        count = self._counts.get((key, code))
        if count is None:
            count = self._counts[key, code] = self._total.labelled(*_label_values(key), str(code))
        count.value += 1
        durations = self._durations.get(key)
        if durations is None:
            durations = self._durations[key] = self._seconds.labelled(*_label_values(key))
        durations.observe(seconds)

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return [self._total, self._seconds, self._current]


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
        current = in_flight[kind]
        current.value += 1
        code = 500
        try:
            response = await following(request)
            code = response.status
            return response
        finally:
            current.value -= 1
            scope = ""
            if info.is_resource:
                scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
            verb = _VERBS.get(info.verb) or request.method
            metrics.observe(
                (verb, info.group, info.version, info.resource, info.subresource, scope), code, clock() - started
            )

    return handle
