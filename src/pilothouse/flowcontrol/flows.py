"""Flows: requests that a schema does not tell apart, and what is counted about all flows of one schema in one level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pilothouse.machinery.metrics import Histogram
from pilothouse.machinery.observations import Observations

if TYPE_CHECKING:
    from pilothouse.flowcontrol.levels import PriorityLevel
    from pilothouse.flowcontrol.schemas import FlowSchema

_DURATIONS: Final = (0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30)
_PREFIX: Final = "apiserver_flowcontrol_"
_LABELS: Final = ("priority_level", "flow_schema")


class FlowHistograms:
    """What is observed with every request."""

    def __init__(self) -> None:
        self.queue_length = Histogram(
            f"{_PREFIX}request_queue_length_after_enqueue",
            "[ALPHA] How long the queue was that a request joined, itself included.",
            _LABELS,
            (0, 10, 25, 50, 100, 250, 500, 1000),
        )
        self.waiting = Histogram(
            f"{_PREFIX}request_wait_duration_seconds",
            "[BETA] Seconds that requests waited in their queues.",
            (*_LABELS, "execute"),
            _DURATIONS,
        )
        self.execution = Histogram(
            f"{_PREFIX}request_execution_seconds",
            "[ALPHA] Seconds that requests held their seats; of a watch, until it had begun.",
            (*_LABELS, "type"),
            _DURATIONS,
        )
        self.seats = Histogram(
            f"{_PREFIX}work_estimated_seats",
            "[ALPHA] The seats that requests were estimated to need, the most at any time.",
            _LABELS,
            (1, 2, 4, 8, 16, 32, 64, 100),
        )
        self.watches = Histogram(
            f"{_PREFIX}watch_count_samples",
            "[ALPHA] How many watches writes were expected to wake.",
            _LABELS,
            (0, 1, 10, 100, 1000, 10000),
        )

    def instruments(self) -> list[Histogram]:
        """All of them."""
        return [self.queue_length, self.waiting, self.execution, self.seats, self.watches]


class FlowSeries:
    """The counts of one schema in one level."""

    __slots__ = (
        "_exempt", "at_once", "at_once_from_queues", "dispatched", "estimated_seats", "executing", "queue_length",
        "regular", "rejected", "seats", "seats_waiting", "unaccommodated", "waited", "waited_in_vain", "waiting",
        "watch", "woken_watches",
    )  # fmt: skip

    def __init__(self, histograms: FlowHistograms, level: str, schema: str, *, exempt: bool = False) -> None:
        self._exempt = exempt
        self.dispatched = self.executing = self.seats = self.waiting = self.seats_waiting = self.unaccommodated = 0
        self.at_once = self.at_once_from_queues = 0
        """Requests of one seat that executed at once, where there are no queues and where there are; see ``fold``."""
        self.rejected: dict[str, int] = {}
        self.queue_length: Observations = histograms.queue_length.labelled(level, schema)
        self.waited: Observations = histograms.waiting.labelled(level, schema, "true")
        self.waited_in_vain: Observations = histograms.waiting.labelled(level, schema, "false")
        self.estimated_seats: Observations = histograms.seats.labelled(level, schema)
        self.woken_watches: Observations = histograms.watches.labelled(level, schema)
        self.regular: Observations = histograms.execution.labelled(level, schema, "regular")
        self.watch: Observations = histograms.execution.labelled(level, schema, "watch")

    def reject(self, reason: str) -> None:
        """One more was turned away."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def reject_at_once(self, reason: str, seats: int) -> None:
        """One more was turned away as it came."""
        self.reject(reason)
        self.estimated_seats.observe(seats)
        if not self._exempt:
            self.waited_in_vain.observe(0.0)

    def start_wide(self, seats: int) -> None:
        """One more of several seats executed at once."""
        self.estimated_seats.observe(seats)
        if not self._exempt:
            self.waited.observe(0.0)

    def fold(self) -> None:
        """Bring the histograms up to date with those that were only counted."""
        queued, self.at_once_from_queues = self.at_once_from_queues, 0
        number, self.at_once = self.at_once + queued, 0
        self.estimated_seats.observe_many(1, number)
        self.queue_length.observe_many(1, queued)
        if not self._exempt:
            self.waited.observe_many(0.0, number)

    @property
    def is_queued(self) -> bool:
        """Whether any of its requests was in a queue."""
        return bool(self.at_once_from_queues or self.queue_length.count)


class Flow:
    """Where requests of some kind from somebody go. Kept by the controller until its configuration changes."""

    __slots__ = ("distinguisher", "hand", "headers", "level", "schema", "series")

    def __init__(
        self, schema: FlowSchema, level: PriorityLevel, distinguisher: str, hand: tuple[int, ...], series: FlowSeries
    ) -> None:
        self.schema, self.level, self.distinguisher, self.hand, self.series = schema, level, distinguisher, hand, series
        self.headers = (
            (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
            (b"x-kubernetes-pf-prioritylevel-uid", level.uid.encode()),
        )
