"""A queue of keys that want reconciling.

A key is in the queue at most once, however often it is added. A key that is being worked on is not handed out again:
what is added meanwhile comes back when that work is done. So each key has one worker at a time and no change is missed.

    add ──► waiting ──get──► processing ──done──► gone
              ▲                  │ add meanwhile
              └──────────────────┘ (handed out again after done)

Namespaces take turns: who has ten thousand objects keeps others waiting for one of them. Within a namespace the key
that was added first comes first.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.metrics import QUEUE_BUCKETS, QUEUES
from pilothouse.machinery.alarms import Alarm
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.observations import Observations

K = TypeVar("K", bound=Hashable)


class Closed(Exception):
    """The queue hands out nothing more."""


def namespace_of(key: Hashable) -> str:
    """The namespace of a key; of keys that do not begin with one, all are in one line."""
    return key[-2] if isinstance(key, tuple) and len(key) > 1 and isinstance(key[-2], str) else ""


class WorkQueue(Generic[K]):
    """See the module's docstring. Belongs to one event loop."""

    def __init__(
        self,
        backoff: Backoff[K] | None = None,
        clock: Clock = SYSTEM,
        name: str = "",
        namespace: Callable[[K], str] = namespace_of,
    ) -> None:
        """Queues with a name are shown to those who scrape. ``namespace`` is asked once for each adding of a key."""
        self._backoff: Backoff[K] = Backoff() if backoff is None else backoff
        self._clock = clock
        self._namespace = namespace
        self._waiting: dict[K, float] = {}
        """Since when."""
        self._lines: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        """What waits, by namespace, the one whose turn it is first."""
        self._processing: dict[K, tuple[float, str]] = {}
        """Since when, and in which namespace."""
        self._busy: Counter[str] = Counter()
        """How many keys of a namespace are being processed."""
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
        return [now - since for since, _ in self._processing.values()]

    def namespace_of(self, key: K) -> str:
        """Whose key that is which is being processed."""
        return self._processing[key][1]

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
            self._lines.setdefault(self._namespace(key), OrderedDict())[key] = None
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

    async def get(self, share: int | None = None) -> K:
        """The next key, to be given back with ``done``. Raises ``Closed``.

        With a share, nothing of a namespace of which so many are being processed.
        """
        while (namespace := self._next(share)) is None:
            if self._closed:
                raise Closed
            self._added.clear()
            await self._added.wait()
        line = self._lines[namespace]
        key, _ = line.popitem(last=False)
        if line:
            self._lines.move_to_end(namespace)
        else:
            del self._lines[namespace]
        now = self._clock.monotonic()
        self.waits.observe(now - self._waiting.pop(key))
        self._processing[key] = (now, namespace)
        self._busy[namespace] += 1
        return key

    def _next(self, share: int | None) -> str | None:
        """Whose turn it is. What belongs to no namespace has no share."""
        for namespace in self._lines:
            if share is None or not namespace or self._busy[namespace] < share:
                return namespace
        return None

    def done(self, key: K) -> None:
        """The work on a key is over; it is handed out again if it was added meanwhile."""
        known = self._processing.pop(key, None)
        if known is not None:
            since, namespace = known
            self.durations.observe(self._clock.monotonic() - since)
            self._busy[namespace] -= 1
            if not self._busy[namespace]:
                del self._busy[namespace]
            if namespace in self._lines:
                self._added.set()
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Hand out nothing more and wake all who wait."""
        self._closed = True
        self._waiting.clear()
        self._lines.clear()
        for key in list(self._alarms):
            self._cancel_alarm(key)
        self._added.set()
