"""Telling one handler about objects, in order and without losing a change when the handler fails.

    event ──► handler returns: it knows this state now
         └──► handler raises: logged and counted; told again after a back-off, from the state it last took to the newest

So a handler that failed for one object hears of all others as before, and catches up with that one as soon as it can.
What it is told stays one of three: an object it does not know is there (``on_add``), one it knows changed
(``on_update``), one it knows went (``on_delete``). A trimming handler, which keeps no object, is told the newest state
(``on_put``) or that there is none (``on_remove``). Handlers are called on the event loop and must not block it: what a
trimming handler makes of an object (``digest``) is made aside where the object is long.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.indexer import Key
from pilothouse.machinery.alarms import Alarm
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.objects import Object

logger = logging.getLogger(__name__)
OnAdd = Callable[[Object], None]
OnUpdate = Callable[[Object, Object], None]
OnDelete = Callable[[Object], None]
OnPut = Callable[[Any], None]
Digest = Callable[[Object], Any]
OnRemove = Callable[[str, str], None]
UNHEALTHY_AFTER: Final = 3


class Told(Protocol):
    """Takes a change from one state to the next."""

    def tell(self, key: Key, old: Object | None, new: Object | None) -> None:
        """May raise; is then told again."""

    def prepare(self, new: Object) -> None:
        """Make, in another thread, what ``tell`` will need of a state."""


@dataclass(frozen=True, slots=True)
class Handler:
    """What somebody does who compares states."""

    on_add: OnAdd | None
    on_update: OnUpdate | None
    on_delete: OnDelete | None

    def tell(self, key: Key, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None and self.on_delete is not None:
                self.on_delete(old)
        elif old is None:
            if self.on_add is not None:
                self.on_add(new)
        elif self.on_update is not None:
            self.on_update(old, new)

    def prepare(self, new: Object) -> None:
        """Compares what it is told, and makes nothing of it."""


@dataclass(slots=True)
class TrimmingHandler:
    """What somebody does who keeps a few values of each object, under its namespace and name."""

    on_put: OnPut
    on_remove: OnRemove
    digest: Digest | None = None
    """Makes of an object what ``on_put`` takes; without, that takes the object."""
    _prepared: tuple[Object, Any] | None = None

    def tell(self, key: Key, old: Object | None, new: Object | None) -> None:
        if new is None:
            self.on_remove(*key)
        elif self.digest is None:
            self.on_put(new)
        else:
            prepared, self._prepared = self._prepared, None
            self.on_put(self.digest(new) if prepared is None or prepared[0] is not new else prepared[1])

    def prepare(self, new: Object) -> None:
        if self.digest is not None:
            self._prepared = new, self.digest(new)


class Registration:
    """One handler of one informer. ``has_synced`` once it was told of all there was when it came."""

    def __init__(
        self,
        name: str,
        handler: Told,
        newest: Callable[[Key], Object | None],
        clock: Clock,
        count_failure: Callable[[], None],
    ) -> None:
        """``newest`` gives the state of an object that a handler which had failed is told of."""
        self.name = name
        self.has_synced = False
        self._handler: Told | None = handler
        self._newest, self._clock, self._count_failure = newest, clock, count_failure
        self._behind: dict[Key, Object | None] = {}
        """For each object that the handler failed on, the state it last took."""
        self._backoff: Backoff[Key] = Backoff(0.1, 30.0)
        self._alarms: dict[Key, Alarm] = {}

    def deliver(self, key: Key, old: Object | None, new: Object | None) -> None:
        """Tell of a change from one state to the next. Raises nothing."""
        if self._behind:
            old = self._behind.get(key, old)
        if self._handler is None:
            return
        try:
            self._handler.tell(key, old, new)
        except Exception:
            self._put_off(key, old)
        else:
            if key in self._behind:
                self._catch_up(key)

    def prepare(self, new: Object) -> None:
        """Make what the handler needs of a state that it will be told of next. Raises nothing, runs in any thread."""
        handler = self._handler
        if handler is not None:
            with suppress(Exception):  # it then fails when it is told, which is where that is dealt with
                handler.prepare(new)

    def errors(self) -> str:
        """What the handler keeps failing on; nothing if all is well."""
        stuck = [key for key in self._behind if self._backoff.failures(key) >= UNHEALTHY_AFTER]
        return f"{self.name} fails on {', '.join('/'.join(key) for key in stuck[:3])}" if stuck else ""

    def close(self) -> None:
        """Tell nothing more."""
        self._handler = None
        for key in list(self._behind):
            self._catch_up(key)

    def _put_off(self, key: Key, old: Object | None) -> None:
        self._count_failure()
        seconds = self._backoff.next(key)
        logger.exception("%s failed on %s/%s, again in %.1f s", self.name, *key, seconds)
        self._cancel(key)
        self._behind[key] = old
        self._alarms[key] = self._clock.delay(seconds, lambda: self._again(key))

    def _again(self, key: Key) -> None:
        self.deliver(key, self._behind[key], self._newest(key))

    def _catch_up(self, key: Key) -> None:
        self._cancel(key)
        self._backoff.forget(key)
        del self._behind[key]

    def _cancel(self, key: Key) -> None:
        alarm = self._alarms.pop(key, None)
        if alarm is not None:
            alarm.cancel()
