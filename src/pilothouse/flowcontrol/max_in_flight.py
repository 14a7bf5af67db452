"""What limits requests when priority and fairness is off: so many reads and so many writes at once, the rest comes
back.

Members of ``system:masters`` are served all the same: they are needed to put things right.
"""

from __future__ import annotations

import time

from pilothouse.flowcontrol.traffic import Traffic
from pilothouse.machinery.metrics import Instrument
from pilothouse.machinery.user import SYSTEM_MASTERS, User


class MaxInFlight:
    """The two limits; 0 is none."""

    def __init__(self, reads: int, writes: int) -> None:
        self._limits = (reads, writes)
        self._counts = [0, 0]
        self.traffic = Traffic()
        self.traffic.set_limits(reads, writes, 1, 1)

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at all."""
        return any(self._limits)

    def instruments(self) -> list[Instrument]:
        """What ``/metrics`` shows."""
        return self.traffic.instruments()

    def enter(self, kind: int, user: User) -> bool | None:
        """Whether a read (0) or a write (1) may be served: True and it must ``leave``, False and need not, None: no."""
        limit = self._limits[kind]
        if not limit:
            return False
        if self._counts[kind] >= limit:
            return False if SYSTEM_MASTERS in user.groups else None
        self._counts[kind] += 1
        self.traffic.add(kind, 1, time.monotonic())
        return True

    def leave(self, kind: int) -> None:
        """It is served."""
        self._counts[kind] -= 1
        self.traffic.add(kind, -1, time.monotonic())
