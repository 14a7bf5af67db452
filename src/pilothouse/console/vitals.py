"""How the server is just now: watches and what waits for them, queues of flow control, the store, the event loop.

Everything is read off its owner when somebody looks; nothing is counted for it before.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.storage.cacher import Watcher
from pilothouse.storage.stack import StorageStack

_MOST_WATCHES: Final = 200
_NAP_SECONDS: Final = 0.02


class Vitals:
    """Reads them for one cluster, whose keys begin with ``root``."""

    def __init__(self, storage: StorageStack, root: str, flow_control: FlowController | MaxInFlight) -> None:
        self._storage, self._root, self._flow_control = storage, root, flow_control

    async def read(self) -> dict[str, Any]:
        """All of them."""
        size, loop_lag = await asyncio.to_thread(self._storage.size), await _measure_lag()
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


async def _measure_lag() -> float:
    """How late the loop wakes who sleeps a moment. Its own clock counts whole milliseconds."""
    due = time.monotonic() + _NAP_SECONDS
    await asyncio.sleep(_NAP_SECONDS)
    return max(0.0, time.monotonic() - due)


def join_vitals(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Those of several processes as one: what each has is added up, what all have is taken from who knows it best."""
    watches = sorted((watch for each in found for watch in each["watches"]), key=lambda w: w["waiting"], reverse=True)
    levels: dict[str, dict[str, Any]] = {}
    for level in (level for each in found for level in each["levels"]):
        known = levels.setdefault(level["name"], {})
        levels[level["name"]] = {
            name: value if name == "name" else known.get(name, 0) + value for name, value in level.items()
        }
    return {
        "processes": len(found),
        "loopLag": max(each["loopLag"] for each in found),
        "store": max((each["store"] for each in found), key=lambda store: (store["bytes"], store["revision"])),
        "watchCount": sum(each["watchCount"] for each in found),
        "watches": watches[:_MOST_WATCHES],
        "levels": list(levels.values()),
    }
