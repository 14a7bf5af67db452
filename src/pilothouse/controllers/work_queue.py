"""A queue of keys that want reconciling.

A key is in the queue at most once, however often it is added. A key that is being worked on is not handed out again:
what is added meanwhile comes back when that work is done. So each key has one worker at a time and no change is missed.

    add ──► waiting ──get──► processing ──done──► gone
              ▲                  │ add meanwhile
              └──────────────────┘ (handed out again after done)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from pilothouse.controllers.backoff import Backoff

K = TypeVar("K", bound=Hashable)


class Alarm(Protocol):
    """A call that will happen."""

    def cancel(self) -> None: ...


Delay = Callable[[float, Callable[[], None]], Alarm]
"""Calls back after some seconds; the event loop's ``call_later``, or a test's own clock."""


def loop_delay(seconds: float, call: Callable[[], None]) -> Alarm:
    """Wait on the running event loop."""
    return asyncio.get_running_loop().call_later(seconds, call)


class Closed(Exception):
    """The queue hands out nothing more."""


class WorkQueue(Generic[K]):
    """See the module's docstring. Belongs to one event loop."""

    def __init__(self, backoff: Backoff[K] | None = None, delay: Delay = loop_delay) -> None:
        self._backoff: Backoff[K] = Backoff() if backoff is None else backoff
        self._delay = delay
        self._waiting: dict[K, None] = {}
        self._processing: set[K] = set()
        self._again: set[K] = set()
        self._alarms: dict[K, Alarm] = {}
        self._added = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: K) -> None:
        """Hand the key out as soon as somebody asks."""
        alarm = self._alarms.pop(key, None)
        if alarm is not None:
            alarm.cancel()
        if self._closed:
            return
        if key in self._processing:
            self._again.add(key)
        else:
            self._waiting[key] = None
            self._added.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key later. One that already waits for its time keeps it; adding it at once comes first."""
        if seconds <= 0:
            self.add(key)
        elif not self._closed and key not in self._alarms and key not in self._waiting:
            self._alarms[key] = self._delay(seconds, lambda: self.add(key))

    def retry(self, key: K) -> float:
        """Add a key that has failed, after its back-off, which is returned."""
        seconds = self._backoff.next(key)
        self.add_after(key, seconds)
        return seconds

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key."""
        self._backoff.forget(key)

    async def get(self) -> K:
        """The next key, to be given back with ``done``. Raises ``Closed``."""
        while not self._waiting:
            if self._closed:
                raise Closed
            self._added.clear()
            await self._added.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """The work on a key is over; it is handed out again if it was added meanwhile."""
        self._processing.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Hand out nothing more and wake all who wait."""
        self._closed = True
        self._waiting.clear()
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        self._added.set()
