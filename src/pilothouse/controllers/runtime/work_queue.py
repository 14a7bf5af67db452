"""A queue of keys that want reconciling.

A key is in the queue at most once, however often it is added. A key that is being worked on is not handed out again:
what is added meanwhile comes back when that work is done. So each key has one worker at a time and no change is missed.
Namespaces take turns, in each the key that came first: nobody's objects wait behind all of another's.

    add ──► waiting ──get──► processing ──done──► gone
              ▲                  │ add meanwhile
              └──────────────────┘ (handed out again after done)
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.metrics import QUEUE_BUCKETS, QUEUES
from pilothouse.machinery.alarms import Alarm
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.metrics import Observations
from pilothouse.net.fair_lines import FairLines, owner_of

K = TypeVar("K", bound=Hashable)


class Closed(Exception):
    """The queue hands out nothing more."""


class WorkQueue(Generic[K]):
    """See the module's docstring. Belongs to one event loop."""

    def __init__(self, backoff: Backoff[K] | None = None, clock: Clock = SYSTEM, name: str = "") -> None:
        """Queues with a name are shown to those who scrape."""
        self._backoff: Backoff[K] = Backoff() if backoff is None else backoff
        self._clock = clock
        self._waiting: dict[K, float] = {}
        """Since when."""
        self._lines = FairLines[K]()
        self._processing: dict[K, float] = {}
        self.name, self.adds, self.retries = name, 0, 0
        self.waits, self.durations = Observations(QUEUE_BUCKETS), Observations(QUEUE_BUCKETS)
        if name:
            QUEUES.add(self)
        self._again: set[K] = set()
        self._alarms: dict[K, tuple[float, Alarm]] = {}
        self._added = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def under_way(self) -> list[float]:
        """How long each key that is worked on has been."""
        now = self._clock.monotonic()
        return [now - since for since in self._processing.values()]

    def add(self, key: K) -> None:
        """Hand the key out as soon as somebody asks."""
        self._cancel_alarm(key)
        if self._closed:
            return
        if key in self._processing:
            self._again.add(key)
        elif key not in self._waiting:
            self.adds += 1
            self._waiting[key] = self._clock.monotonic()
            self._lines.add(key, owner_of(key))
            self._added.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key later. Of several times the earliest holds, and adding it at once comes before all of them."""
        if seconds <= 0:
            self.add(key)
            return
        at = self._clock.monotonic() + seconds
        known = self._alarms.get(key)
        if self._closed or key in self._waiting or (known is not None and known[0] <= at):
            return
        self._cancel_alarm(key)
        self._alarms[key] = (at, self._clock.delay(seconds, lambda: self.add(key)))

    def due(self, key: K) -> float | None:
        """When the key will next be handed out, by the clock that only grows; None if it will not."""
        if key in self._waiting or key in self._again:
            return self._clock.monotonic()
        known = self._alarms.get(key)
        return None if known is None else known[0]

    def add_rate_limited(self, key: K) -> float:
        """Add a key that has failed, after its back-off, which is returned."""
        seconds = self._backoff.next(key)
        self.retries += 1
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Forget the failures of a key: it has succeeded, or is given up."""
        self._backoff.forget(key)

    def num_requeues(self, key: K) -> int:
        """How often the key has failed since it was last forgotten."""
        return self._backoff.failures(key)

    def _cancel_alarm(self, key: K) -> None:
        known = self._alarms.pop(key, None)
        if known is not None:
            known[1].cancel()

    async def get(self) -> K:
        """The next key, to be given back with ``done``. Raises ``Closed``."""
        while not self._waiting:
            if self._closed:
                raise Closed
            self._added.clear()
            await self._added.wait()
        key = self._lines.pop()
        now = self._clock.monotonic()
        self.waits.observe(now - self._waiting.pop(key))
        self._processing[key] = now
        return key

    def done(self, key: K) -> None:
        """The work on a key is over; it is handed out again if it was added meanwhile."""
        since = self._processing.pop(key, None)
        if since is not None:
            self.durations.observe(self._clock.monotonic() - since)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Hand out nothing more and wake all who wait."""
        self._closed = True
        self._waiting.clear()
        self._lines = FairLines()
        for key in list(self._alarms):
            self._cancel_alarm(key)
        self._added.set()
