"""How many requests are served and wait, reads and writes apart, whichever filter limits them.

A state is four numbers: reads executing, writes executing, reads waiting, writes waiting. What ``/metrics`` shows as
being in flight is the most there were within the last whole second: a request that never waits would never be seen
otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from pilothouse.flowcontrol.occupancy import State, Utilization
from pilothouse.machinery.metrics import CollectedGauge, Histogram, Instrument, Refreshed

_BUCKETS: Final = (0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
_SERIES: Final = (
    ("executing", "readOnly"),
    ("executing", "mutating"),
    ("waiting", "readOnly"),
    ("waiting", "mutating"),
)
READ: Final = 0
WRITE: Final = 1
WAITING: Final = 2
_BITS: Final = 16
_MASK: Final = (1 << _BITS) - 1
_ONES: Final = tuple(1 << _BITS * index for index in range(4))
_MOST_STATES: Final = 512


class Traffic:
    """Counts requests in and out.

    The four numbers are kept in one, sixteen bits each, and so are the states whose seconds are summed up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._noted = clock, clock()
        self._state = 0
        self._seconds: dict[int, float] = {}
        self._high, self._shown = [0, 0, 0, 0], [0, 0, 0, 0]
        self._second_ends = int(self._noted) + 1.0
        self._histogram = Histogram(
            "apiserver_flowcontrol_read_vs_write_current_requests",
            "[ALPHA] Requests as a share of their limit, weighted with the nanoseconds that there were so many.",
            ("phase", "request_kind"),
            _BUCKETS,
            native=False,
        )
        self._utilizations = [
            Utilization(self._histogram.labelled(*labels), _reader(index)) for index, labels in enumerate(_SERIES)
        ]

    def set_limits(self, *limits: int) -> None:
        """What the four numbers are shares of."""
        self._fold()
        for utilization, limit in zip(self._utilizations, limits, strict=True):
            utilization.limit = float(max(1, limit))

    def add(self, index: int, change: int, now: float) -> None:
        """One more or one less. ``index``: 0 a read, 1 a write; ``WAITING`` more for those that wait."""
        state, seconds = self._state, self._seconds
        if state in seconds and now < self._second_ends:
            seconds[state] += now - self._noted
            self._noted = now
        else:
            self._catch_up(now)
        state = self._state = state + change * _ONES[index]
        if change > 0:
            number = state >> _BITS * index & _MASK
            if number > self._high[index]:
                self._high[index] = number

    def pass_through(self, index: int, started: float, ended: float) -> None:
        """One more came and went, and nothing else happened meanwhile."""
        self._catch_up(started)
        self._noted = ended
        busy = self._state + _ONES[index]
        self._seconds[busy] = self._seconds.get(busy, 0.0) + ended - started
        number = busy >> _BITS * index & _MASK
        if number > self._high[index]:
            self._high[index] = number

    def _catch_up(self, now: float) -> None:
        state, seconds = self._state, self._seconds
        passed = now - self._noted
        self._noted = now
        if state in seconds:
            seconds[state] += passed
        else:
            if len(seconds) >= _MOST_STATES:
                self._fold_states()
            seconds[state] = passed
        if now >= self._second_ends:
            self._begin_second(now)

    def _begin_second(self, now: float) -> None:
        present = list(_numbers(self._state))
        self._shown = self._high if now < self._second_ends + 1 else present
        self._high = present
        self._second_ends = int(now) + 1.0

    def instruments(self) -> list[Instrument]:
        """What ``/metrics`` shows."""
        return [
            CollectedGauge(
                "apiserver_current_inflight_requests",
                "[STABLE] The most requests served at once within the last second.",
                ("request_kind",),
                lambda: self._marked(0),
            ),
            CollectedGauge(
                "apiserver_current_inqueue_requests",
                "[ALPHA] The most requests queued at once within the last second.",
                ("request_kind",),
                lambda: self._marked(WAITING),
            ),
            Refreshed(self._histogram, self._fold),
        ]

    def _fold(self) -> None:
        self._catch_up(self._clock())
        self._fold_states()

    def _fold_states(self) -> None:
        for state, seconds in self._seconds.items():
            for utilization in self._utilizations:
                utilization.add(_numbers(state), seconds)
        self._seconds.clear()

    def _marked(self, first: int) -> Iterable[tuple[tuple[str, ...], float]]:
        self._catch_up(self._clock())
        for index in (first, first + 1):
            yield (_SERIES[index][1],), self._shown[index]


def _numbers(state: int) -> State:
    return state & _MASK, state >> _BITS & _MASK, state >> 2 * _BITS & _MASK, state >> 3 * _BITS & _MASK


def _reader(index: int) -> Callable[[State], int]:
    return lambda state: state[index]
