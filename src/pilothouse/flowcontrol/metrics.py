"""What is shown about priority and fairness. Only what needs every request is counted with it; the rest is read off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from pilothouse.flowcontrol.flows import FlowHistograms, FlowSeries
from pilothouse.flowcontrol.levels import LevelUtilization, PriorityLevel
from pilothouse.flowcontrol.occupancy import Utilization
from pilothouse.flowcontrol.work import UNITS
from pilothouse.machinery.metrics import CollectedGauge, Histogram, Instrument, Joining, Refreshed

if TYPE_CHECKING:
    from pilothouse.flowcontrol.controller import FlowController

_PREFIX: Final = "apiserver_flowcontrol_"
_LEVEL: Final = ("priority_level",)
_FLOW: Final = ("priority_level", "flow_schema")
_SEAT_BUCKETS: Final = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_REQUEST_BUCKETS: Final = (0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1)
_DEMAND_BUCKETS: Final = (0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6)
Series = Iterable[tuple[tuple[str, ...], float]]


class FlowControlMetrics:
    """The histograms, and gauges of a controller's state."""

    def __init__(self) -> None:
        self.flows = FlowHistograms()
        self._seats = Histogram(
            f"{_PREFIX}priority_level_seat_utilization",
            "[ALPHA] Seats taken as a share of those there are, weighted with nanoseconds.",
            ("phase", "priority_level"),
            _SEAT_BUCKETS,
            native=False,
        )
        self._requests = Histogram(
            f"{_PREFIX}priority_level_request_utilization",
            "[ALPHA] Requests as a share of the room for them, weighted with nanoseconds.",
            ("phase", "priority_level"),
            _REQUEST_BUCKETS,
            native=False,
        )
        self._demand = Histogram(
            f"{_PREFIX}demand_seats",
            "[ALPHA] Seats that could be used as a share of those there are, weighted with nanoseconds.",
            _LEVEL,
            _DEMAND_BUCKETS,
            native=False,
        )

    def utilization(self, level: str) -> LevelUtilization:
        """The histograms of one level."""
        return LevelUtilization(
            Utilization(self._seats.labelled("executing", level), lambda state: state[1]),
            Utilization(self._requests.labelled("executing", level), lambda state: state[0]),
            Utilization(self._requests.labelled("waiting", level), lambda state: state[2]),
            Utilization(self._demand.labelled(level), lambda state: state[1] + state[3]),
        )

    def instruments(self, controller: FlowController) -> list[Instrument]:
        """All of them."""
        histograms = (self._seats, self._requests, self._demand)
        return [
            *(Refreshed(each, controller.fold_series) for each in self.flows.instruments()),
            *(Refreshed(each, controller.catch_up) for each in histograms),
            *_level_gauges(controller),
            *_flow_gauges(controller),
        ]


def _level_gauges(controller: FlowController) -> Iterable[Instrument]:
    def gauge(name: str, words: str, read: Callable[[PriorityLevel], float], joined: Joining = "sum") -> Instrument:
        def collect() -> Series:
            return [((level.name,), read(level)) for level in controller.levels.values()]

        return CollectedGauge(_PREFIX + name, words, _LEVEL, collect, joined=joined)

    yield gauge("nominal_limit_seats", "[BETA] Seats by the level's shares.", lambda level: level.nominal)
    yield gauge("lower_limit_seats", "[ALPHA] Seats that the level does not lend.", lambda level: level.lower)
    yield gauge("upper_limit_seats", "[ALPHA] Seats that the level may have at most.", lambda level: level.upper)
    yield gauge("current_limit_seats", "[ALPHA] Seats that the level has now.", lambda level: level.current)
    yield gauge("target_seats", "[ALPHA] Seats that the level should have.", lambda level: level.target)
    yield gauge(
        "demand_seats_high_watermark",
        "[ALPHA] The most seats the level could have used in the last period.",
        lambda level: level.demand.high_watermark,
    )
    yield gauge(
        "demand_seats_average", "[ALPHA] Average of the demand in the last period.", lambda level: level.demand.average
    )
    yield gauge(
        "demand_seats_stdev",
        "[ALPHA] Standard deviation of the demand in the last period.",
        lambda level: level.demand.deviation,
    )
    yield gauge("demand_seats_smoothed", "[ALPHA] Smoothed demand.", lambda level: level.demand.smoothed)
    yield gauge(
        "current_r",
        "[ALPHA] The level's virtual time, in seat-seconds.",
        lambda level: level.queues.virtual_time / UNITS,
        "most",
    )
    yield CollectedGauge(
        _PREFIX + "seat_fair_frac",
        "[ALPHA] The part of their targets that levels get which are within their bounds.",
        (),
        lambda: [((), controller.fair_part)],
        joined="most",
    )
    yield from _dispatch_gauges(controller)


def _dispatch_gauges(controller: FlowController) -> Iterable[Instrument]:
    def bounds() -> Iterable[tuple[str, tuple[float, ...]]]:
        for level in controller.levels.values():
            if level.queues.bounds is not None:
                yield level.name, tuple(each / UNITS for each in level.queues.bounds)

    def pairs(first: int) -> Series:
        return [
            ((name, bound), values[first + index])
            for name, values in bounds()
            for index, bound in enumerate(("min", "max"))
        ]

    words = "[ALPHA] Virtual time at the last dispatch."
    yield CollectedGauge(
        _PREFIX + "dispatch_r", words, _LEVEL, lambda: [((name,), v[0]) for name, v in bounds()], joined="most"
    )
    words = "[ALPHA] Virtual start of the request dispatched last."
    yield CollectedGauge(
        _PREFIX + "latest_s", words, _LEVEL, lambda: [((name,), v[1]) for name, v in bounds()], joined="most"
    )
    words = "[ALPHA] Least and greatest virtual start of requests first in their queues."
    yield CollectedGauge(_PREFIX + "next_s_bounds", words, (*_LEVEL, "bound"), lambda: pairs(2), joined="most")
    words = "[ALPHA] The same less the work that is being done for the queue."
    yield CollectedGauge(
        _PREFIX + "next_discounted_s_bounds", words, (*_LEVEL, "bound"), lambda: pairs(4), joined="most"
    )


def _flow_gauges(controller: FlowController) -> Iterable[Instrument]:
    def gauge(name: str, words: str, read: Callable[[FlowSeries], float], *, queued: bool) -> Instrument:
        def collect() -> Series:
            return [
                (names, read(series)) for names, series in controller.series.items() if series.is_queued or not queued
            ]

        return CollectedGauge(_PREFIX + name, words, _FLOW, collect)

    def counter(name: str, words: str, read: Callable[[FlowSeries], float]) -> Instrument:
        def collect() -> Series:
            return [(names, read(series)) for names, series in controller.series.items() if read(series)]

        return CollectedGauge(_PREFIX + name, words, _FLOW, collect, "counter")

    yield gauge("current_inqueue_requests", "[BETA] Requests that wait.", lambda series: series.waiting, queued=True)
    yield gauge(
        "current_inqueue_seats", "[ALPHA] Seats that are waited for.", lambda series: series.seats_waiting, queued=True
    )
    yield gauge(
        "current_executing_requests", "[BETA] Requests being served.", lambda series: series.executing, queued=False
    )
    yield gauge("current_executing_seats", "[BETA] Seats that are taken.", lambda series: series.seats, queued=False)
    yield counter("dispatched_requests_total", "[BETA] Requests that were served.", lambda series: series.dispatched)
    yield counter(
        "request_dispatch_no_accommodation_total",
        "[ALPHA] Times that the next request needed more seats than were free.",
        lambda series: series.unaccommodated,
    )

    def rejected() -> Series:
        return [
            ((*names, reason), count)
            for names, series in controller.series.items()
            for reason, count in series.rejected.items()
        ]

    words = "[BETA] Requests that were turned away."
    yield CollectedGauge(_PREFIX + "rejected_requests_total", words, (*_FLOW, "reason"), rejected, "counter")
