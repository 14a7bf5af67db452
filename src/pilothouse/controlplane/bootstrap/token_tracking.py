"""The config map that says since when the use of legacy service account tokens is tracked.

It is made when it is missing, but at most once in half an hour: among servers that disagree about having it, it would
otherwise come and go all the time. A date that cannot be read is replaced by today's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Final

from pilothouse.controllers.own_objects import create, existing, update
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.store.store import Store

NAMESPACE: Final = "kube-system"
NAME: Final = "kube-apiserver-legacy-service-account-token-tracking"
KEY: Final = "since"
CREATION_SECONDS: Final = 1800.0
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class TokenTracking:
    """Keeps the config map. ``clock`` gives seconds since the epoch."""

    def __init__(self, config_maps: Store, informers: InformerFactory, clock: Callable[[], float] = time.time) -> None:
        self._store = config_maps
        self._clock = clock
        self._next_creation = 0.0
        self.controller: Controller[str] = Controller("legacy token tracking", self.reconcile)
        self._informer = informers.of("", "v1", "configmaps", NAMESPACE, NAME)
        self._informer.add_handler(self._changed, lambda old, new: self._changed(new), self._changed, name="tracking")

    async def start(self, supervisor: Supervisor) -> None:
        """Put the config map right now and after every change."""
        await self._informer.wait_synced()
        await self.controller.reconcile(NAME)
        self.controller.start(supervisor)

    def _changed(self, config_map: Object) -> None:
        self.controller.queue.add(NAME)

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
