"""Time as controllers see it, so that a test can let it pass.

Whatever waits, dates or expires in a controller does so by a ``Clock`` that it was given. ``SYSTEM`` is the machine's;
``testing.fake_clock.FakeClock`` stands still until it is told to advance. A clock is also a ``machinery.times.Clock``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

from pilothouse.machinery.alarms import Alarm, loop_delay
from pilothouse.machinery.times import Instant, now_instant


class Clock(Protocol):
    """What time it is, and calls that happen later."""

    def now(self) -> Instant:
        """The wall clock, for timestamps that others read."""

    def time_ns(self) -> int:
        """The wall clock in nanoseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, for measuring how long something takes."""

    def delay(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Call back when so many seconds have passed."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


class SystemClock:
    """The clock of the machine and the alarms of the running event loop."""

    def now(self) -> Instant:
        """The wall clock."""
        return now_instant()

    def time_ns(self) -> int:
        """The wall clock in nanoseconds since 1970."""
        return time.time_ns()

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic()

    def delay(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Call back when so many seconds have passed."""
        return loop_delay(seconds, call)

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        await asyncio.sleep(seconds)


SYSTEM: Final = SystemClock()
