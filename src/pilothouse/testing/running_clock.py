"""A clock for living clusters under test: it runs as the machine's does, and can be told to skip time.

Controllers, the scheduler and simulated nodes wait and date by it, so that ``advance(3600)`` lets happen what an hour
would bring: jobs end, cron jobs start, TTLs pass. The time is skipped in steps, with a moment for work between them:
otherwise every lease would be found stale at once. Timestamps that the API server itself sets stay the machine's.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pilothouse.machinery.alarms import Alarm, sleep_by
from pilothouse.machinery.times import SECOND, Instant

_STEP_SECONDS = 4.0
_PAUSE_SECONDS = 0.01


@dataclass(order=True, slots=True)
class _Pending:
    """A call that is due at some time of this clock."""

    at: float
    number: int
    call: Callable[[], None] = field(compare=False)
    handle: asyncio.TimerHandle | None = field(compare=False, default=None)
    done: bool = field(compare=False, default=False)

    def cancel(self) -> None:
        """Do not call."""
        self.done = True
        if self.handle is not None:
            self.handle.cancel()

    def ring(self) -> None:
        """Call, once."""
        if not self.done:
            self.cancel()
            self.call()


class RunningClock:
    """A ``controllers.runtime.clock.Clock``. Alarms belong to one event loop; ``advance`` may be called anywhere."""

    def __init__(self) -> None:
        self._skipped = 0.0
        self._pending: list[_Pending] = []
        self._numbers = itertools.count()
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> Instant:
        """The wall clock, moved on by what was skipped."""
        seconds, nanos = divmod(self.time_ns(), SECOND)
        return Instant(seconds, nanos)

    def time_ns(self) -> int:
        """The same in nanoseconds since 1970."""
        return time.time_ns() + round(self._skipped * SECOND)

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return time.monotonic() + self._skipped

    def delay(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Call back when so many seconds have passed or were skipped."""
        self._loop = asyncio.get_running_loop()
        pending = _Pending(self.monotonic() + seconds, next(self._numbers), call)
        pending.handle = self._loop.call_later(max(0.0, seconds), pending.ring)
        while self._pending and self._pending[0].done:
            heapq.heappop(self._pending)
        heapq.heappush(self._pending, pending)
        return pending

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""
        await sleep_by(self.delay, seconds)

    def advance(self, seconds: float) -> None:
        """Skip time, from any thread but that of the cluster's loop; what was due in it has been called after."""
        left = seconds
        while left > 0:
            step = min(left, _STEP_SECONDS)
            left -= step
            self._call(lambda step=step: self._skip(step))  # type: ignore[misc]
            time.sleep(_PAUSE_SECONDS)

    async def advance_here(self, seconds: float) -> None:
        """The same for coroutines on the loop of the cluster."""
        left = seconds
        while left > 0:
            step = min(left, _STEP_SECONDS)
            left -= step
            self._skip(step)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _skip(self, seconds: float) -> None:
        self._skipped += seconds
        while self._pending and (self._pending[0].done or self._pending[0].at <= self.monotonic()):
            heapq.heappop(self._pending).ring()

    def _call(self, work: Callable[[], None]) -> None:
        """Run on the loop of the alarms and wait for it; here if nobody has set an alarm yet."""
        if self._loop is None or self._loop.is_closed():
            work()
            return
        over = threading.Event()

        def run() -> None:
            try:
                work()
            finally:
                over.set()

        self._loop.call_soon_threadsafe(run)
        over.wait()
