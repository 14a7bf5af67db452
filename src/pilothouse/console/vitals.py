"""How the server is just now: watches and what waits for them, queues of flow control, the store, the event loop.

Everything is read off its owner when somebody looks; nothing is counted for it before.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.storage.cacher import Watcher
from pilothouse.storage.stack import StorageStack

_MOST_WATCHES: Final = 200


class Vitals:
    """Reads them for one cluster, whose keys begin with ``root``."""

    def __init__(self, storage: StorageStack, root: str, flow_control: FlowController | MaxInFlight) -> None:
        self._storage, self._root, self._flow_control = storage, root, flow_control

    async def read(self, loop_lag: float) -> dict[str, Any]:
        """All of them; the lag of the loop in seconds was measured by who asks."""
        size = await asyncio.to_thread(self._storage.size)
        watches = [
            watch for cacher in self._storage.cachers() for watch in cacher.served() if self._is_ours(watch.prefix)
        ]
        watches.sort(key=lambda watch: watch.backlog, reverse=True)
        return {
            "loopLag": loop_lag,
            "store": self._store(size),
            "watchCount": len(watches),
            "watches": [self._watch(watch) for watch in watches[:_MOST_WATCHES]],
            "levels": self._levels(),
        }

    def _is_ours(self, prefix: str) -> bool:
        return prefix.startswith(self._root + "/")

    def _store(self, size: int) -> dict[str, Any]:
        cachers = self._storage.cachers()
        objects = {
            prefix[len(self._root) + 1 : -1]: len(cache)
            for cacher in cachers
            for prefix, cache in cacher.loaded()
            if self._is_ours(prefix)
        }
        return {
            "bytes": size,
            "revision": cachers[0].revision,
            "compacted": cachers[0].compacted,
            "objects": objects,
        }

    def _watch(self, watch: Watcher) -> dict[str, Any]:
        return {
            "what": watch.prefix[len(self._root) + 1 :].rstrip("/"),
            "client": watch.client,
            "waiting": watch.backlog,
            "live": watch.is_live,
        }

    def _levels(self) -> list[dict[str, Any]]:
        if isinstance(self._flow_control, MaxInFlight):
            return []
        return [
            {
                "name": name,
                "seats": 0 if level.spec.exempt else level.current,
                "executing": level.queues.executing,
                "waiting": level.queues.waiting,
                "dispatched": level.queues.totals.dispatched,
                "rejected": level.queues.totals.rejected,
            }
            for name, level in sorted(self._flow_control.levels.items())
        ]
