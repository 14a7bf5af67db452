"""Time that passes when a test says so, for everything that takes a ``Delay``."""

from __future__ import annotations

from collections.abc import Callable


class FakeAlarm:
    """A call that happens when enough time was let pass."""

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self) -> None:
        """Do not call."""
        self.cancelled = True


class FakeTime:
    """A clock with alarms."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[FakeAlarm] = []

    def __call__(self) -> float:
        """The time, as ``time.monotonic`` tells it."""
        return self.now

    def delay(self, seconds: float, call: Callable[[], None]) -> FakeAlarm:
        """Call back when so many seconds have passed."""
        alarm = FakeAlarm(self.now + seconds, call)
        self.alarms.append(alarm)
        return alarm

    def advance(self, seconds: float) -> None:
        """Let time pass and make the calls that fall into it."""
        self.now += seconds
        due = [alarm for alarm in self.alarms if alarm.at <= self.now]
        self.alarms = [alarm for alarm in self.alarms if alarm.at > self.now]
        for alarm in sorted(due, key=lambda alarm: alarm.at):
            if not alarm.cancelled:
                alarm.call()
