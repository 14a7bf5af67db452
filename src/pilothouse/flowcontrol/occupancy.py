"""How long a priority level was in which state: the source of its demand statistics and of its utilization metrics.

A state is four numbers (requests executing, seats taken, requests waiting, seats waited for; see ``traffic.py`` for
other four). Noting one costs a look into a dict, and the usual one, in which nobody waits and whoever executes has one
seat, an addition in a list; averages, deviations and histograms are made when somebody asks.
kube-apiserver keeps a histogram for each number and updates all of them with every request, which would cost us more
than the rest of flow control.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from pilothouse.machinery.observations import Observations

_MOST_STATES: Final = 512
NARROW_STATES: Final = 256
_NANOSECONDS: Final = 1e9


State = tuple[int, int, int, int]


class Reader(Protocol):
    """What is made of states."""

    def add(self, state: State, seconds: float) -> None:
        """The state lasted so long."""


class Utilization:
    """A histogram of one of the numbers as a share of its limit, weighted with time."""

    __slots__ = ("_read", "limit", "observations")

    def __init__(self, observations: Observations, read: Callable[[State], int]) -> None:
        self.observations, self._read = observations, read
        self.limit = 1.0

    def add(self, state: State, seconds: float) -> None:
        """The state lasted so long."""
        self.observations.observe_many(self._read(state) / self.limit, int(seconds * _NANOSECONDS))


class Demand:
    """How many seats a level could have used over a period, and smoothed over past periods."""

    __slots__ = ("_integral", "_seconds", "_squares", "average", "deviation", "high_watermark", "peak", "smoothed")

    def __init__(self) -> None:
        self.average = self.deviation = self.smoothed = 0.0
        self.high_watermark = 0
        self.peak = 0
        self._seconds = self._integral = self._squares = 0.0

    def add(self, state: State, seconds: float) -> None:
        """The state lasted so long."""
        wanted = state[1] + state[3]
        self.peak = max(self.peak, wanted)
        self._seconds += seconds
        self._integral += wanted * seconds
        self._squares += wanted * wanted * seconds

    def end_period(self, state: State, smoothing: float) -> None:
        """Take stock, and begin anew with the present state."""
        present = state[1] + state[3]
        self.high_watermark = max(self.peak, present)
        if self._seconds > 0:
            self.average = self._integral / self._seconds
            self.deviation = math.sqrt(max(0.0, self._squares / self._seconds - self.average**2))
            envelope = self.average + self.deviation
            self.smoothed = max(envelope, smoothing * self.smoothed + (1 - smoothing) * envelope)
        self.peak = present
        self._seconds = self._integral = self._squares = 0.0


class Occupancy:
    """The time spent in each state since it was last folded into what is made of it."""

    __slots__ = ("_readers", "_times", "narrow")

    def __init__(self, readers: Iterable[Reader] = ()) -> None:
        self._times: dict[State, float] = {}
        self.narrow = [0.0] * NARROW_STATES
        """Seconds in which so many executed, with one seat each, and nobody waited: added to instead of ``note``."""
        self._readers = tuple(readers)

    def note(self, state: State, seconds: float) -> None:
        """It was in a state for so long."""
        times = self._times
        if state in times:
            times[state] += seconds
        else:
            if len(times) >= _MOST_STATES:
                self.fold()
            times[state] = seconds

    def fold(self) -> None:
        """Bring all that is made of it up to date."""
        for state, seconds in self._times.items():
            for reader in self._readers:
                reader.add(state, seconds)
        self._times.clear()
        for number, seconds in enumerate(self.narrow):
            if seconds:
                for reader in self._readers:
                    reader.add((number, number, 0, 0), seconds)
        self.narrow[:] = [0.0] * NARROW_STATES
