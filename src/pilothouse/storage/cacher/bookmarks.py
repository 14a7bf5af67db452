"""When a watcher is due for a bookmark: about once a minute, and shortly before its time runs out."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.storage.cacher.watcher import Watcher

INTERVAL_SECONDS = 60.0
BEFORE_DEADLINE_SECONDS = 2.0


class BookmarkSchedule:
    """Watchers ordered by the time of their next bookmark."""

    def __init__(self, interval: float = INTERVAL_SECONDS) -> None:
        self._interval = interval
        self._due: list[tuple[float, int, Watcher]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, watcher: Watcher, now: float) -> None:
        heapq.heappush(self._due, (self.next_time(now, watcher.deadline), next(self._numbers), watcher))

    def tick(self, now: float) -> list[Watcher]:
        """The watchers that are due; those that still live are scheduled anew."""
        due: list[Watcher] = []
        while self._due and self._due[0][0] <= now:
            watcher = heapq.heappop(self._due)[2]
            if not watcher.ended:
                due.append(watcher)
        for watcher in due:
            self.add(watcher, now)
        return due

    def next_time(self, now: float, deadline: float | None) -> float:
        regular = now + self._interval
        if deadline is not None and now < deadline - BEFORE_DEADLINE_SECONDS < regular:
            return deadline - BEFORE_DEADLINE_SECONDS
        return regular
