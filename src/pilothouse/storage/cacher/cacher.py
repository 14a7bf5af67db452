"""The watch cache of a store: one live feed, routed to one cache for each resource."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final

from pilothouse.machinery.supervision import OnError, Supervised, Supervisor
from pilothouse.storage.backends.contract import Backend, Compacted, Event, Feed, StorageError, Unavailable
from pilothouse.storage.cacher.bookmarks import BookmarkSchedule
from pilothouse.storage.cacher.entries import EntryCodec, drop_old_forms
from pilothouse.storage.cacher.resource import PendingWrite, ResourceCache
from pilothouse.storage.cacher.watcher import Watcher
from pilothouse.storage.cacher.window import WindowLimits
from pilothouse.storage.progress import Progress

_TICKS_BETWEEN_LOOKS: Final = 10


class Cacher:
    """Follows an open backend from `open` to `close`. All caches move together: they share one revision."""

    def __init__(
        self,
        backend: Backend,
        *,
        limits: WindowLimits = WindowLimits(),  # noqa: B008 - immutable
        clock: Callable[[], float] = time.monotonic,
        tick_seconds: float = 1.0,
        supervisor: Supervisor | None = None,
    ) -> None:
        self.backend = backend
        self.now = clock
        self.progress = Progress()
        self.compacted = 0
        """What the store had forgotten when it was last asked: nobody is shown a moment before that."""
        self._limits, self._tick_seconds = limits, tick_seconds
        self._resources: dict[str, ResourceCache] = {}
        self._bookmarks = BookmarkSchedule()
        self._served: dict[Watcher, None] = {}
        self._ending = False
        self._feed: Feed | None = None
        self._supervisor = supervisor or Supervisor("watch caches")
        self._ticking: Supervised | None = None

    @property
    def revision(self) -> int:
        """The newest revision that all ready caches reflect."""
        return self.progress.revision

    async def open(self) -> None:
        self._follow()
        if self._tick_seconds > 0:
            self._ticking = self._supervisor.run("clock of the watch caches", self._keep_ticking)

    async def close(self) -> None:
        """End all watches and stop following; the backend stays open."""
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        ticking, self._ticking = self._ticking, None
        if ticking is not None:
            await ticking.stop()
        for task in [resource.cancel_loading() for resource in self._resources.values()]:
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError, StorageError):
                    await task
        self._break(Unavailable("the watch cache is closed"))

    def resource(self, prefix: str, codec: EntryCodec) -> ResourceCache:
        """The cache of all keys below a prefix; made at the first call, loaded at its first use."""
        found = self._resources.get(prefix)
        if found is None:
            found = self._resources[prefix] = ResourceCache(self, self.backend, prefix, codec, self._limits)
        return found

    def loaded(self) -> list[tuple[str, ResourceCache]]:
        """The caches that hold their resource, by prefix."""
        return [(prefix, cache) for prefix, cache in self._resources.items() if cache.ready]

    def find(self, prefix: str) -> ResourceCache | None:
        """The cache of a prefix that somebody has asked for."""
        return self._resources.get(prefix)

    def drop(self, prefix: str) -> None:
        """Forget a resource that is no longer served: its watches end and its memory is freed."""
        found = self._resources.pop(prefix, None)
        if found is not None:
            found.reset(Unavailable("the resource is no longer served"))

    @property
    def is_open(self) -> bool:
        """Whether the caches follow the store."""
        return self._feed is not None

    def require_open(self) -> None:
        if self._feed is None:
            raise Unavailable("the watch cache is closed")

    def receive(self, events: Sequence[Event], revision: int) -> None:
        now = self.now()
        for event in events:
            origin = event.origin
            resource = origin.cache if isinstance(origin, PendingWrite) else self._find(event.key)
            if resource is not None:
                resource.apply(event, now)
        self.progress.advance(revision)

    def fail(self, error: StorageError) -> None:
        self._break(error)
        if isinstance(error, Compacted):
            # The feed lost its place: what it missed is read anew.
            self._follow()

    def supervise(self, name: str, work: Coroutine[Any, Any, None], on_error: OnError) -> None:
        """Start work of a cache that ends by itself."""
        self._supervisor.spawn(name, work, on_error)

    def serve(self, watcher: Watcher) -> None:
        """Note the watch of a client, which does not outlive the server's stop."""
        if self._ending:
            watcher.end()
        else:
            self._served[watcher] = None

    def forget(self, watcher: Watcher) -> None:
        """The watch has ended."""
        self._served.pop(watcher, None)

    def served(self) -> list[Watcher]:
        """The watches of clients."""
        return list(self._served)

    def stop_serving_watches(self) -> list[Watcher]:
        """Let no more watches of clients begin (they end at once); returns those there are. All other work goes on."""
        self._ending = True
        return list(self._served)

    def schedule_bookmarks(self, watcher: Watcher) -> None:
        self._bookmarks.add(watcher, self.now())

    def tick(self) -> None:
        """What time alone demands: bookmarks that are due, windows and further forms that have grown old."""
        now = self.now()
        for watcher in self._bookmarks.tick(now):
            watcher.offer_bookmark(watcher.offered)
        for resource in self._resources.values():
            resource.trim(now)
        drop_old_forms(time.monotonic())

    def _follow(self) -> None:
        self._feed = self.backend.follow(self)
        self.progress.restart(self._feed.revision)

    def _break(self, error: StorageError) -> None:
        for resource in self._resources.values():
            resource.reset(error)
        self.progress.fail(error)

    def _find(self, key: str) -> ResourceCache | None:
        resources = self._resources
        end = key.rfind("/") + 1
        while end > 0:
            found = resources.get(key[:end])
            if found is not None:
                return found
            end = key.rfind("/", 0, end - 1) + 1
        return None

    async def note_compaction(self) -> None:
        """Ask what the store has forgotten. While it cannot tell, what is known stays."""
        with suppress(StorageError):
            self.compacted = await self.backend.compacted_revision()

    async def _keep_up_indexes(self) -> None:
        for resource in list(self._resources.values()):
            await resource.keep_up_indexes()

    async def _keep_ticking(self) -> None:
        while True:
            for _ in range(_TICKS_BETWEEN_LOOKS):
                await asyncio.sleep(self._tick_seconds * random.uniform(1.0, 1.25))
                self.tick()
                await self._keep_up_indexes()
            await self.note_compaction()
