"""The config map that says since when the use of legacy service account tokens is tracked.

It is made when it is missing, but at most once in half an hour: among servers that disagree about having it, it would
otherwise come and go all the time. A date that cannot be read is replaced by today's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, Final

from pilothouse.controllers.following import follow_object
from pilothouse.controllers.own_objects import create, existing, update
from pilothouse.controllers.running import Controller
from pilothouse.registry.store.store import Store

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
KEY: Final = "since"
CREATION_SECONDS: Final = 1800.0
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

Object = dict[str, Any]


class TokenTracking:
    """Keeps the config map. ``clock`` gives seconds since the epoch."""

    def __init__(self, config_maps: Store, clock: Callable[[], float] = time.time) -> None:
        self._store = config_maps
        self._clock = clock
        self._next_creation = 0.0
        self.controller: Controller[str] = Controller("legacy token tracking", self.reconcile)
        self._follower = follow_object(config_maps, NAMESPACE, NAME, lambda: self.controller.queue.add(NAME))

    async def start(self) -> None:
        """Put the config map right now and after every change."""
        self._follower.start()
        await self._follower.synced.wait()
        await self.controller.reconcile(NAME)
        self.controller.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._follower.stop()
        await self.controller.stop()

    async def reconcile(self, key: str) -> None:
        """Create the config map, or give it a date that can be read."""
        stored = await existing(self._store, NAMESPACE, NAME)
        if stored is None:
            await self._create(key)
        elif not is_date((stored.get("data") or {}).get(KEY, "")):
            await update(self._store, NAMESPACE, NAME, self._dated)

    async def _create(self, key: str) -> None:
        at = self._clock()
        if at < self._next_creation:
            self.controller.queue.add_after(key, self._next_creation - at)
            return
        await create(self._store, self._dated({"metadata": {"name": NAME, "namespace": NAMESPACE}}))
        self._next_creation = at + CREATION_SECONDS

    def _dated(self, obj: Object) -> Object:
        today = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%d")
        return {**obj, "data": {**(obj.get("data") or {}), KEY: today}}


def is_date(text: str) -> bool:
    """Whether the text is a day of the calendar, as ``2026-01-31``."""
    try:
        return bool(_DATE.fullmatch(text)) and date.fromisoformat(text) is not None
    except ValueError:
        return False
