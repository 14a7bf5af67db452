"""How long single filters take, estimated from one request in seventeen.

Timing each filter of each request would cost as much as the filters. So there are two chains of the same filters, one
with clocks in it. Every seventeenth request takes that one and counts seventeen times; what clients repeat has shorter
periods or even ones, so that no kind of request is always or never chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from time import perf_counter
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler, Serving
from pilothouse.machinery.metrics import Histogram, Instrument
from pilothouse.machinery.observations import Observations

EVERY: Final = 17
_BUCKETS: Final = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0)


class FilterDurations:
    """The family."""

    def __init__(self) -> None:
        self._seconds = Histogram(
            "apiserver_request_filter_duration_seconds",
            f"[ALPHA] Seconds that requests spend in filters, from one in {EVERY}.",
            ("filter",),
            _BUCKETS,
        )

    def timed(self, name: str, wrap: Callable[[Handler], Handler], following: Handler) -> Handler:
        """A filter with its clock: from where it begins to where it hands the request on."""
        seen = self._seconds.labelled(name)
        return _started(wrap(_handed_on(following, seen)))

    def instruments(self) -> list[Instrument]:
        """All of them."""
        return [self._seconds]


def with_sampling(plain: Handler, timed: Handler) -> Handler:
    """Every seventeenth request takes the chain with clocks."""
    following = cycle([timed, *[plain] * (EVERY - 1)]).__next__

    def handle(request: APIRequest) -> Serving:
        return following()(request)

    return handle


def _started(wrapped: Handler) -> Handler:
    def handle(request: APIRequest) -> Serving:
        request.filter_began = perf_counter()
        return wrapped(request)

    return handle


def _handed_on(following: Handler, seen: Observations) -> Handler:
    def handle(request: APIRequest) -> Serving:
        seen.observe_many(perf_counter() - request.filter_began, EVERY)
        return following(request)

    return handle
