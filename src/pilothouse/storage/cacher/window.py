"""The recent past of one resource: changes kept in memory so that a watch can resume without touching the backend.

It reaches back as far in time as upstream's, however many changes that are, within bounds: by number, and by the bytes
of superseded states that only the window keeps alive. Of a large resource these may be more: 10,000 nodes whose watches
are cut off together, while thousands of their pods are replaced, ask for what happened in the last minute. What has
left the window is read from the backend's log instead, so a small one costs speed, never correctness.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from pilothouse.storage.cacher.changes import Change


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Upstream keeps 75 seconds: a bookmark interval and a little more."""

    changes: int = 10_000
    seconds: float = 75.0
    superseded_bytes: int = 8 << 20
    share: float = 1 / 16
    """Changes of so large a part of the objects that there are stay, whatever their bytes."""


class Window:
    """Holds all changes after revision `start`, of a resource with so many objects at the time."""

    def __init__(self, start: int, limits: WindowLimits, count: Callable[[], int]) -> None:
        self.start = start
        self._limits, self._count = limits, count
        self._changes: deque[Change] = deque()
        self._superseded = 0

    def __len__(self) -> int:
        return len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        self._superseded += change.superseded
        self.trim(change.at)

    def trim(self, now: float) -> None:
        """Let go of what is too much or too old."""
        limits, changes = self._limits, self._changes
        while changes and (
            len(changes) > limits.changes
            or (self._superseded > limits.superseded_bytes and len(changes) > limits.share * self._count())
            or now - changes[0].at > limits.seconds
        ):
            gone = changes.popleft()
            self.start = gone.revision
            self._superseded -= gone.superseded

    def since(self, revision: int) -> list[Change] | None:
        """All changes after a revision, in order; None when the window does not reach back that far."""
        if revision < self.start:
            return None
        found = []
        for change in reversed(self._changes):
            if change.revision <= revision:
                break
            found.append(change)
        found.reverse()
        return found

    def touched_since(self, revision: int, prefix: str, effort: int = 1000) -> bool:
        """Whether anything below a prefix may have changed after a revision; looks at `effort` changes at most."""
        if revision < self.start:
            return True
        for number, change in enumerate(reversed(self._changes)):
            if change.revision <= revision:
                return False
            if number >= effort or change.key.startswith(prefix):
                return True
        return False
