"""The watch cache of a store: one live feed, routed to one cache for each resource."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from pilothouse.storage.backends.contract import Backend, Compacted, Event, Feed, StorageError, Unavailable
from pilothouse.storage.cacher.bookmarks import BookmarkSchedule
from pilothouse.storage.cacher.delivering import Deliveries
from pilothouse.storage.cacher.entries import EntryCodec
from pilothouse.storage.cacher.progress import Progress
from pilothouse.storage.cacher.resource import PendingWrite, ResourceCache
from pilothouse.storage.cacher.watcher import Watcher
from pilothouse.storage.cacher.window import WindowLimits


class Cacher:
    """Follows an open backend from `open` to `close`. All caches move together: they share one revision."""

    def __init__(
        self,
        backend: Backend,
        *,
        limits: WindowLimits = WindowLimits(),  # noqa: B008 - immutable
        clock: Callable[[], float] = time.monotonic,
        tick_seconds: float = 1.0,
    ) -> None:
        self.backend = backend
        self.now = clock
        self.progress = Progress()
        self.deliveries = Deliveries()
        self._limits, self._tick_seconds = limits, tick_seconds
        self._resources: dict[str, ResourceCache] = {}
        self._bookmarks = BookmarkSchedule()
        self._served: dict[Watcher, None] = {}
        self._ending = False
        self._feed: Feed | None = None
        self._ticking: asyncio.Task[None] | None = None

    @property
    def revision(self) -> int:
        """The newest revision that all ready caches reflect."""
        return self.progress.revision

    async def open(self) -> None:
        self._follow()
        if self._tick_seconds > 0:
            self._ticking = asyncio.get_running_loop().create_task(self._keep_ticking())

    async def close(self) -> None:
        """End all watches and stop following; the backend stays open."""
        if self._feed is not None:
            self._feed.close()
            self._feed = None
        tasks = [self._ticking, *(resource.cancel_loading() for resource in self._resources.values())]
        self._ticking = None
        for task in tasks:
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

    def drop(self, prefix: str) -> None:
        """Forget a resource that is no longer served: its watches end and its memory is freed."""
        found = self._resources.pop(prefix, None)
        if found is not None:
            found.reset(Unavailable("the resource is no longer served"))

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

    def serve(self, watcher: Watcher) -> None:
        """Note the watch of a client, which does not outlive the server's stop."""
        if self._ending:
            watcher.end()
        else:
            self._served[watcher] = None

    def forget(self, watcher: Watcher) -> None:
        """The watch has ended."""
        self._served.pop(watcher, None)

    def end_served_watches(self) -> None:
        """End the watches of clients, and at once those still to come; all other work goes on."""
        self._ending = True
        for watcher in list(self._served):
            watcher.end()

    def schedule_bookmarks(self, watcher: Watcher) -> None:
        self._bookmarks.add(watcher, self.now())

    def tick(self) -> None:
        """What time alone demands: bookmarks that are due, and windows that have grown old."""
        now = self.now()
        for watcher in self._bookmarks.tick(now):
            watcher.offer_bookmark(self.revision)
        for resource in self._resources.values():
            resource.trim(now)

    def _follow(self) -> None:
        self._feed = self.backend.follow(self)
        self.progress.advance(self._feed.revision)

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

    async def _keep_ticking(self) -> None:
        while True:
            await asyncio.sleep(self._tick_seconds * random.uniform(1.0, 1.25))
            self.tick()
