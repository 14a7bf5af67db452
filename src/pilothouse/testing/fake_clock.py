"""The clock of controllers for tests: it stands still until it is told to advance."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilothouse.machinery.alarms import sleep_by
from pilothouse.machinery.times import SECOND, Instant
from pilothouse.testing.fake_time import FakeAlarm, FakeTime


class FakeClock:
    """A ``controllers.runtime.clock.Clock`` that begins at some second of 2026."""

    def __init__(self, start: int = 1_790_000_000) -> None:
        self._start: float = start
        self._time = FakeTime()
        self._sleeping = asyncio.Event()

    def now(self) -> Instant:
        """The wall clock."""
        seconds, nanos = divmod(self.time_ns(), SECOND)
        return Instant(seconds, nanos)

    def time_ns(self) -> int:
        """The wall clock in nanoseconds since 1970."""
        return round(self._start * SECOND) + round(self._time.now * SECOND)

    def monotonic(self) -> float:
        """Seconds that have passed since the clock was made."""
        return self._time.now

    def delay(self, seconds: float, call: Callable[[], None]) -> FakeAlarm:
        """Call back when so many seconds have passed."""
        alarm = self._time.delay(seconds, call)
        self._sleeping.set()
        return alarm

    async def sleep(self, seconds: float) -> None:
        """Wait until so many seconds were let pass."""
        await sleep_by(self.delay, seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass and make the calls that fall into it."""
        self._time.advance(seconds)

    def set_wall_clock(self, seconds: float) -> None:
        """Step the wall clock, forth or back; nothing that waits notices."""
        self._start = seconds - self._time.now

    @property
    def waiting(self) -> list[float]:
        """In how many seconds each call is due that is yet to come."""
        return sorted(alarm.at - self._time.now for alarm in self._time.alarms if not alarm.cancelled)

    async def until_waiting(self) -> None:
        """Return when somebody waits for this clock."""
        while not self.waiting:
            self._sleeping.clear()
            await self._sleeping.wait()
