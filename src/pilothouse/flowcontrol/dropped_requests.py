"""When to come back: ``Retry-After`` of a level grows while requests are turned away, and shrinks when few are.

Looked at once a second at most, over the last ``seconds`` seconds: at least three a second double it (not twice within
that time), fewer than one a second take one off. Never less than 1, never more than 32.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

MOST_SECONDS: Final = 32


class DroppedRequests:
    """The requests that one level turned away."""

    __slots__ = ("_clock", "_count", "_history", "_raised", "_second", "retry_after")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.retry_after = 1
        self._clock = clock
        self._history: deque[tuple[int, int]] = deque(maxlen=MOST_SECONDS + 1)
        self._second = self._count = self._raised = 0

    def add(self) -> int:
        """One more; returns when it is to come back."""
        second = int(self._clock())
        if second == self._second:
            self._count += 1
        else:
            self._history.append((self._second, self._count))
            self._second, self._count = second, 1
            self._adjust(second)
        return self.retry_after

    def _adjust(self, second: int) -> None:
        wait = self.retry_after
        dropped = sum(count for when, count in self._history if second - wait <= when < second)
        if second - self._raised >= wait and dropped >= 3 * wait:
            self.retry_after = min(2 * wait, MOST_SECONDS)
            self._raised = second
        elif dropped < wait and wait > 1:
            self.retry_after = wait - 1
