"""One informer for each kind in a process: decodes its objects once, keeps them found, and tells everybody of changes.

    watch cache ──► Informer ──► Indexer   lister: get, list, by_index; always as new as what handlers were told
                          └────► handlers  on_add(obj), on_update(old, new), on_delete(obj), in the order of changes

Guarantees. Every handler hears of each object at least once with its newest state; of what went, too, even if it went
while nobody watched. A watch that ends (fell behind, store reset, definition changed) is taken up again from the
present state, and only differences are told. A handler that raises ends nothing: see ``handlers``. The informer runs
under a supervisor, and whatever else kills it, it comes back.

Objects handed out are shared by all and must not be changed; ``indexer.copy_of`` makes one that may be.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.handlers import OnAdd, OnDelete, OnUpdate, Registration
from pilothouse.controllers.runtime.indexer import Indexer, IndexFunction, Key, Lister, key_of
from pilothouse.controllers.runtime.metrics import LATENCY_BUCKETS
from pilothouse.controllers.runtime.sources import Source
from pilothouse.machinery.metrics import Observations
from pilothouse.machinery.supervision import Supervisor
from pilothouse.storage.backends.contract import Compacted, StorageError
from pilothouse.storage.cacher import BOOKMARK, DELETED, Entry, Watcher

logger = logging.getLogger(__name__)
_SLICE: Final = 200
"""So many objects are decoded and told of before others get their turn on the event loop."""


class Informer:
    """All objects of a resource, or those of one namespace, or a single one. Made by ``InformerFactory.of``."""

    def __init__(
        self,
        name: str,
        find_source: Callable[[], Source | None],
        namespace: str = "",
        object_name: str = "",
        *,
        clock: Clock = SYSTEM,
        count_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._find_source, self._namespace, self._object_name = find_source, namespace, object_name
        self._clock, self._count_failure = clock, count_failure
        self._indexer = Indexer()
        self._registrations: list[Registration] = []
        self._served = asyncio.Event()
        self._synced = asyncio.Event()
        self._revision = 0
        self.latencies = Observations(LATENCY_BUCKETS)
        """How long all handlers together took for a change."""

    @property
    def revision(self) -> int:
        """How far the informer has come: every change up to this revision was told."""
        return self._revision

    @property
    def lister(self) -> Lister:
        """Reads the objects, which are shared and must not be changed."""
        return self._indexer

    @property
    def is_served(self) -> bool:
        """Whether there is such a resource now; custom ones come and go."""
        return self._find_source() is not None

    @property
    def has_synced(self) -> bool:
        """Whether all objects that existed at the start are known."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when all objects that existed at the start are known and handlers were told of them."""
        await self._synced.wait()

    def errors(self) -> str:
        """What handlers keep failing on; nothing if all is well."""
        return "; ".join(error for each in self._registrations if (error := each.errors()))

    def add_index(self, name: str, function: IndexFunction | None = None) -> None:
        """Have ``lister.by_index`` find objects under what the function gives; well-known indexes need none."""
        self._indexer.add_index(name, function)

    def add_handler(
        self,
        on_add: OnAdd | None = None,
        on_update: OnUpdate | None = None,
        on_delete: OnDelete | None = None,
        *,
        name: str = "",
    ) -> Registration:
        """Tell of changes from now on, and first, before this returns, of each object that is known already."""
        registration = Registration(
            f"{name or 'handler'} of {self.name}",
            self._indexer,
            self._clock,
            self._count_failure,
            on_add,
            on_update,
            on_delete,
        )
        for obj in self._indexer.list():
            registration.deliver(key_of(obj), None, obj)
        registration.has_synced = self.has_synced
        self._registrations.append(registration)
        return registration

    def remove_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more."""
        registration.close()
        self._registrations.remove(registration)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to follow the objects, until the supervisor is closed."""
        supervisor.run(f"informer of {self.name}", self._run)

    def look_again(self) -> None:
        """The resource may be served now, or served differently."""
        self._served.set()

    # Following

    async def _run(self) -> None:
        while True:
            self._served.clear()
            source = self._find_source()
            if source is None:
                self._lose_all()
                await self._served.wait()
                continue
            try:
                await self._drain(source, await self._take_all(source))
            except Compacted:
                continue
            except StorageError:
                found = self._find_source()
                if found is not None and found.store is source.store:
                    raise

    async def _take_all(self, source: Source) -> Watcher:
        """Take over the present state and watch from there, with nothing lost between."""
        cache, prefix = source.store.cache, self._prefix(source)
        await cache.wait_fresh()
        revision, entries = cache.revision, cache.entries(prefix)
        if prefix is not None and self._object_name:
            entries = [entry for entry in entries if entry.key == prefix]
        for key in self._indexer.known() - {(entry.namespace, entry.name) for entry in entries}:
            self._remove(key)
        for start in range(0, len(entries), _SLICE):
            page = entries[start : start + _SLICE]
            if source.prepare is not None:
                await source.prepare(page)
            for entry in page:
                self._put(source, entry)
            await asyncio.sleep(0)
        watcher = await cache.watch(prefix, revision)
        self._revision = revision
        self._mark_synced()
        return watcher

    async def _drain(self, source: Source, watcher: Watcher) -> None:
        try:
            while batch := await watcher.next_batch():
                events = [event for event in batch if event.type != BOOKMARK and self._is_wanted(source, event.entry)]
                if source.prepare is not None:
                    await source.prepare([event.entry for event in events if event.type != DELETED])
                began = time.perf_counter()
                for number, event in enumerate(events):
                    self._revision = event.entry.revision
                    if event.type == DELETED:
                        self._remove((event.entry.namespace, event.entry.name))
                    else:
                        self._put(source, event.entry)
                    if number % _SLICE == _SLICE - 1:
                        await asyncio.sleep(0)
                if events:
                    self.latencies.observe_many((time.perf_counter() - began) / len(events), len(events))
        finally:
            watcher.stop()
        if watcher.error is not None:
            raise watcher.error

    def _prefix(self, source: Source) -> str | None:
        store = source.store
        if self._object_name:
            return store.key(self._namespace, self._object_name)
        return f"{store.prefix}{self._namespace}/" if self._namespace else None

    def _is_wanted(self, source: Source, entry: Entry) -> bool:
        """A single object's key is also the beginning of others."""
        return not self._object_name or entry.key == source.store.key(self._namespace, self._object_name)

    def _put(self, source: Source, entry: Entry) -> None:
        known = self._indexer.get(entry.namespace, entry.name)
        if known is not None and known["metadata"].get("resourceVersion") == str(entry.revision):
            return
        obj = source.object_of(entry)
        old = self._indexer.put(obj)
        if old is not None and old["metadata"].get("uid") != obj["metadata"].get("uid"):
            # Deleted and created again while nobody watched: two objects, not one that changed.
            self._tell(key_of(obj), old, None)
            old = None
        self._tell(key_of(obj), old, obj)

    def _remove(self, key: Key) -> None:
        old = self._indexer.remove(key)
        if old is not None:
            self._tell(key, old, None)

    def _tell(self, key: Key, old: dict[str, object] | None, new: dict[str, object] | None) -> None:
        for registration in self._registrations:
            registration.deliver(key, old, new)

    def _lose_all(self) -> None:
        self._synced.clear()
        for key in self._indexer.known():
            self._remove(key)

    def _mark_synced(self) -> None:
        self._synced.set()
        for registration in self._registrations:
            registration.has_synced = True
