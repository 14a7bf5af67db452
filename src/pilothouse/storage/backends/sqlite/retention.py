"""How long history is kept, and which revision may be forgotten by now.

Revisions carry no time, so marks are taken as time goes by: "at 12:00:30 the store stood at revision 4711". What is
older than the newest mark that has reached the retention age may go. Marks live in memory: a restart keeps history
longer, never shorter.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """History is kept for this long, and for at most this many revisions."""

    seconds: float = 300.0
    revisions: int = 500_000
    marks: int = 10
    """How finely time is divided: history may live one part longer than asked."""


class RetentionClock:
    """Turns marks of (time, revision) into the revision to compact at."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._marks: deque[tuple[float, int]] = deque()

    def due(self, now: float, revision: int) -> int:
        """Note where the store stands now and say up to which revision it may forget; 0 for nothing."""
        step = self._retention.seconds / self._retention.marks
        if not self._marks or now - self._marks[-1][0] >= step:
            self._marks.append((now, revision))
        target = max(0, revision - self._retention.revisions)
        while self._marks and now - self._marks[0][0] >= self._retention.seconds:
            target = max(target, self._marks.popleft()[1])
        return target
