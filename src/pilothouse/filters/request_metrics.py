"""What is counted about requests: how many, how long they took, how large they and their answers were."""

from __future__ import annotations

from typing import Final

from pilothouse.endpoints.request_info import RequestInfo
from pilothouse.machinery.metrics import MAX_HISTOGRAMS, Counter, Gauge, Histogram, Instrument, Value
from pilothouse.machinery.observations import Observations

_BUCKETS: Final = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
)  # fmt: skip
_LABELS: Final = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_SHORT_LABELS: Final = ("verb", "group", "version", "resource", "subresource", "scope", "component")
_SIZES: Final = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
_UNBOUNDED: Final = frozenset({"WATCH", "CONNECT"})
_TERMINATED: Final = frozenset({429, 504})
_NOWHERE: Final = frozenset({400, 401, 403, 404, 405, 408, 429, 503, 504})
_BODIES: Final = tuple(50_000.0 + 100_000 * step for step in range(31))
_BODY_VERBS: Final = {"deletecollection": "delete_collection"}
Key = tuple[str, str, str, str, str, str, str]
"""The values of all labels but the component."""


class RequestSeries:
    """The series of requests that are alike."""

    __slots__ = ("counts", "durations", "sizes", "sli")

    def __init__(self, durations: Observations, sli: Observations | None, sizes: Observations | None) -> None:
        self.durations, self.sli, self.sizes = durations, sli, sizes
        self.counts: dict[int, Value] = {}
        """By code."""


class RequestMetrics:
    """Requests by verb, resource and scope: how many, how long they took, how large their answers were."""

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
        self._sli = Histogram(
            "apiserver_request_sli_duration_seconds",
            "[ALPHA] The same without time in queues, for requests that are meant to end.",
            _SHORT_LABELS,
            _BUCKETS[2:],
            beside=_BUCKETS,
        )
        self._sizes = Histogram(
            "apiserver_response_sizes", "[STABLE] Bytes of answers to reads.", _SHORT_LABELS, _SIZES
        )
        self._terminations = Counter(
            "apiserver_request_terminations_total",
            "[ALPHA] Requests that the server put an end to: turned away, or out of time.",
            ("verb", "group", "version", "resource", "subresource", "scope", "component", "code"),
        )
        self._long_running = Gauge("apiserver_longrunning_requests", "[STABLE] Watches and streams now.", _SHORT_LABELS)
        self._bodies = Histogram(
            "apiserver_request_body_size_bytes",
            "[ALPHA] Bytes of the bodies of writes.",
            ("resource", "verb", "group"),
            _BODIES,
        )
        self._deprecated = Gauge(
            "apiserver_requested_deprecated_apis",
            "[STABLE] Deprecated APIs that were asked for, by the release that has them no more.",
            ("group", "version", "resource", "subresource", "removed_release"),
            joined="most",
        )
        self._validations = Histogram(
            "field_validation_request_duration_seconds",
            "[ALPHA] Seconds that writes took, by the field validation they asked for.",
            ("field_validation",),
            _BUCKETS[2:],
            beside=_BUCKETS,
        )
        self._known: dict[Key, RequestSeries] = {}

    def observe(
        self,
        key: Key,
        code: int,
        seconds: float,
        size: int | None = 0,
        queued: float = 0.0,
        validation: str | None = None,
        *,
        leads_nowhere: bool = False,
    ) -> None:
        """One request is done. Paths that lead nowhere are counted together: clients can think of too many.

        Where the answer's size is not known yet, ``observe_size`` tells of it later. ``validation`` is the field
        validation that a write asked for.
        """
        series = self._known.get(key)
        if series is None:
            if (leads_nowhere and code in _NOWHERE) or len(self._known) >= MAX_HISTOGRAMS:
                key = (key[0], "", "", "", "", "", "")
            series = self._known.get(key) or self._make_series(key)
        count = series.counts.get(code)
        if count is None:
            count = series.counts[code] = self._total.labelled(*_label_values(key), str(code))
        count.value += 1
        place = series.durations.observe(seconds)
        if series.sli is not None:
            if queued:
                series.sli.observe(seconds - queued)
            else:
                series.sli.observe_at(place, seconds)
        if validation is not None:
            self._validations.labelled(validation).observe_at(place, seconds)
        if series.sizes is not None and size is not None:
            series.sizes.observe(float(size))
        if code in _TERMINATED:
            self._terminations.labelled(*_short_values(key), str(code)).value += 1

    def observe_size(self, key: Key, size: int) -> None:
        """So long was an answer that was made while it was sent."""
        series = self._known.get(key)
        if series is not None and series.sizes is not None:
            series.sizes.observe(float(size))

    def _make_series(self, key: Key) -> RequestSeries:
        short = _short_values(key)
        sli = None if key[0] in _UNBOUNDED else self._sli.labelled(*short)
        sizes = self._sizes.labelled(*short) if key[0] in ("GET", "LIST") else None
        series = self._known[key] = RequestSeries(self._seconds.labelled(*_label_values(key)), sli, sizes)
        return series

    def long_running(self, key: Key) -> Value:
        """How many streams of a kind there are."""
        if key not in self._known and len(self._known) >= MAX_HISTOGRAMS:
            key = (key[0], "", "", "", "", "", "")
        return self._long_running.labelled(*_short_values(key))

    def observe_body(self, info: RequestInfo, size: int) -> None:
        """A write came with a body of so many bytes."""
        verb = _BODY_VERBS.get(info.verb, info.verb)
        self._bodies.labelled(info.resource, verb, info.group).observe(float(size))

    def note_deprecated(self, info: RequestInfo, removed_release: str) -> None:
        """A deprecated API was asked for."""
        labels = (info.group, info.version, info.resource, info.subresource, removed_release)
        self._deprecated.labelled(*labels).value = 1

    def instruments(self) -> list[Instrument]:
        """All of them."""
        requests: list[Instrument] = [self._total, self._seconds, self._sli, self._sizes, self._terminations]
        return [*requests, self._long_running, self._bodies, self._deprecated, self._validations]


def _short_values(key: Key) -> tuple[str, ...]:
    return (key[0], *key[2:], "apiserver")


def _label_values(key: Key) -> tuple[str, ...]:
    return (*key, "apiserver")
