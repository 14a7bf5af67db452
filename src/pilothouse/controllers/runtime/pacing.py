"""When to look again at what has many parts: each look is at all of them, so many changes share one.

    pacer = Pacer(controller.queue, clock)
    pacer.add(key, parts)           at once where there are few parts

Looks of one controller take turns: of a thousand parts there are five a second where nothing else changes, and fewer
where much does, so that they never take more than a few hundredths of a processor.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.work_queue import WorkQueue

K = TypeVar("K", bound=Hashable)
_MANY: Final = 50
_SECONDS_FOR_EACH: Final = 0.0002


class Pacer(Generic[K]):
    """Adds keys to a queue, those with many parts later."""

    def __init__(self, queue: WorkQueue[K], clock: Clock) -> None:
        self._queue, self._clock = queue, clock
        self._free_from = 0.0

    def add(self, key: K, parts: int) -> None:
        """Something of the key has changed: have it looked at, once for all changes until then."""
        if parts < _MANY:
            self._queue.add(key)
            return
        now = self._clock.monotonic()
        at = max(self._free_from, now) + parts * _SECONDS_FOR_EACH
        # What was planned here may have come already, by another reason: only the queue knows what is yet to come.
        due = self._queue.due(key)
        if due is None or due > at:
            self._free_from = at
            self._queue.add_after(key, at - now)
