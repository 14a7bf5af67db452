"""Following objects of a resource: what there is, then every change, for as long as the server runs.

A follower watches the whole resource, or only what lies below a prefix: one namespace, or one object. It hears
of each object at least once with its newest state. When a watch breaks off (it fell behind, or the store was reset) it
starts again with what there is, and objects that went meanwhile are reported as gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from pilothouse.registry.store.store import Store
from pilothouse.storage.backends.contract import StorageError
from pilothouse.storage.cacher import BOOKMARK, DELETED, Watcher

logger = logging.getLogger(__name__)
OnPut = Callable[[dict[str, Any]], None]
OnRemove = Callable[[str, str], None]


class Follower:
    """Calls back for the objects of one store. ``synced`` is set when all that existed at the start were reported."""

    def __init__(self, store: Store, on_put: OnPut, on_remove: OnRemove, prefix: str | None = None) -> None:
        self._store = store
        self._prefix = prefix
        self._on_put = on_put
        self._on_remove = on_remove
        self._known: set[tuple[str, str]] = set()
        self._task: asyncio.Task[None] | None = None
        self.synced = asyncio.Event()

    def start(self) -> None:
        """Begin to follow."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop following."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                watcher = await self._restart()
                await self._drain(watcher)
            except StorageError as error:
                logger.debug("following %s: %s", self._store.prefix, error)
                await asyncio.sleep(0.2)

    async def _restart(self) -> Watcher:
        """Report the present state and subscribe to what follows it, with nothing lost between."""
        cache = self._store.cache
        if not cache.ready:
            await cache.wait_ready()
        await cache.wait_fresh()
        watcher = await cache.watch(self._prefix)
        seen: set[tuple[str, str]] = set()
        for entry in cache.entries(self._prefix):
            seen.add((entry.namespace, entry.name))
            self._on_put(self._store.decode(entry))
        for namespace, name in self._known - seen:
            self._on_remove(namespace, name)
        self._known = seen
        self.synced.set()
        return watcher

    async def _drain(self, watcher: Watcher) -> None:
        try:
            while batch := await watcher.next_batch():
                for event in batch:
                    where = (event.entry.namespace, event.entry.name)
                    if event.type == DELETED:
                        self._known.discard(where)
                        self._on_remove(*where)
                    elif event.type != BOOKMARK:
                        self._known.add(where)
                        self._on_put(self._store.decode(event.entry))
        finally:
            watcher.stop()


def follow_object(store: Store, namespace: str, name: str, on_change: Callable[[], None]) -> Follower:
    """A follower of one object, which calls back whenever it came, changed or went."""
    return Follower(store, lambda obj: on_change(), lambda *gone: on_change(), store.key(namespace, name))
