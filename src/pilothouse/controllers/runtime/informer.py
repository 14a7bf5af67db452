"""One informer for each kind in a process: decodes its objects once, keeps them found, and tells everybody of changes.

    watch cache ──► Informer ──► Indexer   lister: get, list, by_index; always as new as what handlers were told
                          ├────► handlers  on_add(obj), on_update(old, new), on_delete(obj), in the order of changes
                          └────► trimming handlers  on_put(obj), on_remove(namespace, name), likewise

Decoded objects are many times as large as the bytes that the watch cache keeps anyway. Those who need a few values of
each, and keep these, register a trimming handler (client-go has transforms for it). While there is nobody else, no
object outlives the call that tells of it; the first who asks for the lister, an index or a handler has them kept.

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
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from math import inf
from typing import Final

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.handlers import (
    Digest,
    Handler,
    OnAdd,
    OnDelete,
    OnPut,
    OnRemove,
    OnUpdate,
    Registration,
    TrimmingHandler,
)
from pilothouse.controllers.runtime.index_gate import IndexGate
from pilothouse.controllers.runtime.indexer import Indexer, IndexFunction, Key, Lister, Reader, key_of
from pilothouse.controllers.runtime.metrics import LATENCY_BUCKETS
from pilothouse.controllers.runtime.replays import FEW, Add, Knowledge, Replays, Tell
from pilothouse.controllers.runtime.sources import Source
from pilothouse.machinery.objects import Object
from pilothouse.machinery.observations import Observations
from pilothouse.machinery.supervision import Supervised, Supervisor
from pilothouse.machinery.workers import LONG, aside, weighed
from pilothouse.net.work_turns import work_turns
from pilothouse.storage.backends.contract import Compacted, StorageError
from pilothouse.storage.cacher import BOOKMARK, DELETED, Entry, Watcher

logger = logging.getLogger(__name__)
_IDENTITY: Final = frozenset({"metadata.name", "metadata.namespace", "metadata.uid"})
_SLICE: Final = 200
"""So many objects are read together."""
_KEY_BYTES: Final = 16
"""What comparing the keys of that many objects weighs: a thousand are compared on the loop, more aside."""
_AT_ONCE: Final = 16
"""So many changes are told of without waiting for a place in a turn of the event loop."""


class Informer:
    """All objects of a resource, or those of one namespace, or a single one. Made by ``InformerFactory.of``."""

    def __init__(
        self,
        name: str,
        find_source: Callable[[], Source | None],
        namespace: str = "",
        object_name: str = "",
        *,
        gate: IndexGate | None = None,
        clock: Clock = SYSTEM,
        count_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self._gate = gate or IndexGate()
        self._find_source, self._namespace, self._object_name = find_source, namespace, object_name
        self._clock, self._count_failure = clock, count_failure
        self._entries: dict[str, dict[str, Entry]] = {}
        """What was told of, by namespace and name; the watch cache has the same."""
        self._indexer = Indexer()
        self._fields: list[frozenset[str] | None] = []
        """What each trimming handler looks at; None for everything."""
        self._keeps_objects = False
        """Whether there is anybody but trimming handlers. Without, the indexer stays empty."""
        self._registrations: list[Registration] = []
        self._running: Supervised | None = None
        self._served = asyncio.Event()
        self._synced = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._caught_up.set()
        self._all_told = False
        """Whether every handler there is was told of all that is known, though not all is known so far."""
        self._latecomers = 0
        self._is_complete = True
        """Whether nothing that came before somebody needed it is still to be kept or told of in the next taking."""
        self._replays = Replays(self._indexer, self._newest, self._gate)
        self._watcher: Watcher | None = None
        self._revision = 0
        self._made: tuple[Entry, bool, Object] | None = None
        """The object of a long entry that was made aside, and whether it is one to keep."""
        self.latencies = Observations(LATENCY_BUCKETS)
        """How long all handlers together took for a change."""

    @property
    def revision(self) -> int:
        """How far the informer has come: every change up to this revision was told."""
        return self._revision

    @property
    def lister(self) -> Lister:
        """Reads the objects, which are shared and must not be changed."""
        self._keep_objects()
        return self._indexer

    @property
    def is_served(self) -> bool:
        """Whether there is such a resource now; custom ones come and go."""
        return self._find_source() is not None

    @property
    def has_synced(self) -> bool:
        """Whether all objects that existed at the start are known, and whoever came since was told of them."""
        return self._synced.is_set() and self._caught_up.is_set()

    @property
    def was_synced(self) -> bool:
        """Whether all objects that existed at the start are known, whoever may have come since."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when all objects that existed at the start are known and handlers were told of them."""
        while not self.has_synced:
            await self._synced.wait()
            await self._caught_up.wait()

    def errors(self) -> str:
        """Why it does not come back, and what handlers keep failing on; nothing if all is well."""
        found = [each.errors() for each in self._registrations]
        if self._running is not None and not self._running.is_healthy:
            found.insert(0, f"{self._running.name}: {self._running.error}")
        return "; ".join(filter(None, found))

    def add_index(self, name: str, function: IndexFunction | None = None) -> None:
        """Have ``lister.by_index`` find objects under what the function gives; well-known indexes need none."""
        self._keep_objects()
        index, who = self._indexer, ("index", name)

        def end() -> None:
            index.finished(name)
            self._gate.open()

        if index.add_index(name, function, lambda: self._replays.hurry(who)):
            self._gate.close()
            self._replay(self._replays.prepare, who, lambda key, obj: index.enter(name, obj), end)

    def add_reading(self, name: str, reader: Reader) -> None:
        """Have ``lister.reading`` give what the reader makes of an object, which is made once for each state."""
        self._keep_objects()
        index = self._indexer
        if index.add_reading(name, reader):
            self._replay(self._replays.prepare, ("reading", name), lambda key, obj: index.read(name, obj))

    def add_handler(
        self,
        on_add: OnAdd | None = None,
        on_update: OnUpdate | None = None,
        on_delete: OnDelete | None = None,
        *,
        name: str = "",
    ) -> Registration:
        """Tell of changes from now on, and first of each object that is known already.

        That is done before this returns, unless there are many: ``wait_synced`` waits for it.
        """
        self._keep_objects()
        registration = self._registration(Handler(on_add, on_update, on_delete), name)
        self._registrations.append(registration)
        self._tell_known(registration)
        return registration

    def add_trimming_handler(
        self,
        on_put: OnPut,
        on_remove: OnRemove,
        *,
        fields: Iterable[str] = (),
        digest: Digest | None = None,
        name: str = "",
    ) -> Registration:
        """Tell of new states and of what went to somebody who keeps no object. The same state may be told again.

        ``fields`` are the paths of what the handler looks at, beside name and namespace: it may get no others, and gets
        these without defaults. Without, it gets whole objects. ``digest`` is what to make of an object before it is
        put: aside, where the object is long.
        """
        registration = self._registration(TrimmingHandler(on_put, on_remove, digest), name)
        self._registrations.append(registration)
        self._fields.append(_IDENTITY | {*fields} if fields else None)
        if not self._keeps_objects:
            self._catch_up()
        self._tell_known(registration)
        return registration

    def _registration(self, handler: Handler | TrimmingHandler, name: str) -> Registration:
        self._all_told = False
        label = f"{name or 'handler'} of {self.name}"
        return Registration(label, handler, self._newest, self._clock, self._count_failure)

    def remove_handler(self, registration: Registration) -> None:
        """Tell a handler nothing more."""
        registration.close()
        self._registrations.remove(registration)
        self._replays.drop(registration)
        self._settle()

    def start(self, supervisor: Supervisor) -> None:
        """Begin to follow the objects, until the supervisor is closed."""
        self._running = supervisor.run(f"informer of {self.name}", self._run)

    @property
    def is_empty(self) -> bool:
        """Whether all that was told of has gone, and that was told of too."""
        return not any(self._entries.values())

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to follow, nothing left to tell of, and nobody to tell."""
        return self.is_empty and not self.is_served and not self._registrations

    async def stop(self) -> None:
        """Follow nothing any more, until it is started again."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

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
        trims = not self._keeps_objects and self._wanted_fields() is not None
        if trims and prefix is None and source.shows_stored and not self._entries:
            self._all_told = True
            with cache.shown_while_loading(partial(self._look, source)):
                await cache.wait_fresh()
        else:
            await cache.wait_fresh()
        while True:
            came, revision = self._latecomers, cache.revision
            await self._take(source, cache.entries(prefix))
            watcher = await cache.watch(prefix, revision)
            if came == self._latecomers:
                self._revision = revision
                self._mark_synced()
                return watcher
            watcher.stop()

    def _look(self, source: Source, entry: Entry, obj: Object) -> None:
        """Tell of an entry as it is loaded, which spares reading it once more; ``_take`` comes by all of them later."""
        if self._all_told and entry.size < LONG:
            self._entries.setdefault(entry.namespace, {})[entry.name] = entry
            self._tell((entry.namespace, entry.name), None, source.typed(obj))

    async def _take(self, source: Source, entries: list[Entry]) -> None:
        if self._object_name:
            entries = [entry for entry in entries if self._is_wanted(source, entry)]
        if self._entries:
            for key in await weighed(_KEY_BYTES * len(entries), self._gone, entries):
                self._remove(key)
        turns, until = work_turns(), 0.0
        for start in range(0, len(entries), _SLICE):
            page = entries[start : start + _SLICE]
            if self._keeps_objects or self._wanted_fields() is None:
                page = await source.store.cache.read(page)
            if source.prepare is not None:
                await source.prepare(page)
            for entry in page:
                if time.perf_counter() >= until:
                    until = await turns.begin()
                await self._make_long(source, entry)
                self._put(source, entry)

    def _gone(self, entries: list[Entry]) -> set[Key]:
        """What is known and not among these. Nobody else changes what is known meanwhile."""
        return self._known() - {(entry.namespace, entry.name) for entry in entries}

    async def _drain(self, source: Source, watcher: Watcher) -> None:
        self._watcher = watcher
        turns = work_turns()
        try:
            while batch := await watcher.next_batch():
                events = [event for event in batch if event.type != BOOKMARK and self._is_wanted(source, event.entry)]
                if source.prepare is not None:
                    await source.prepare([event.entry for event in events if event.type != DELETED])
                began, until = time.perf_counter(), 0.0 if len(events) > _AT_ONCE else inf
                for event in events:
                    if time.perf_counter() >= until:
                        asked = time.perf_counter()
                        until = await turns.begin()
                        began += time.perf_counter() - asked
                    if event.type == DELETED:
                        self._remove((event.entry.namespace, event.entry.name))
                    else:
                        await self._make_long(source, event.entry)
                        self._put(source, event.entry)
                    self._revision = event.entry.revision
                if events:
                    self.latencies.observe_many((time.perf_counter() - began) / len(events), len(events))
        finally:
            self._watcher = None
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

    async def _make_long(self, source: Source, entry: Entry) -> None:
        """Make the object of a long entry aside, with what handlers make of it: ``_put`` then finds both."""
        if entry.size >= LONG:
            keeps = self._keeps_objects
            self._made = entry, keeps, await aside(self._make_all, source, entry, keeps, weight=entry.size)

    def _make_all(self, source: Source, entry: Entry, keeps: bool) -> Object:
        obj = source.object_of(entry) if keeps else source.passing_object_of(entry, self._wanted_fields())
        if keeps:
            self._indexer.prepare(obj)
        for registration in tuple(self._registrations):
            registration.prepare(obj)
        return obj

    def _object(self, source: Source, entry: Entry) -> Object:
        """The object of an entry, for keeping or not."""
        made, self._made = self._made, None
        if made is not None and made[0] is entry and made[1] is self._keeps_objects:
            return made[2]
        if self._keeps_objects:
            return source.object_of(entry)
        return source.passing_object_of(entry, self._wanted_fields())

    def _put(self, source: Source, entry: Entry) -> None:
        names = self._entries.setdefault(entry.namespace, {})
        known = names.get(entry.name)
        if known is not None and known.revision == entry.revision:
            self._complete(source, entry)
            return
        names[entry.name] = entry
        key = (entry.namespace, entry.name)
        if not self._keeps_objects:
            self._tell(key, None, self._object(source, entry))
            return
        obj = self._object(source, entry)
        old = self._indexer.put(obj)
        if old is not None and old["metadata"].get("uid") != obj["metadata"].get("uid"):
            # Deleted and created again while nobody watched: two objects, not one that changed.
            self._tell(key, old, None)
            old = None
        self._tell(key, old, obj)

    def _remove(self, key: Key) -> None:
        namespace, name = key
        names = self._entries.get(namespace, {})
        if names.pop(name, None) is None:
            return
        if not names:
            del self._entries[namespace]
        self._tell(key, self._indexer.remove(key), None)

    def _tell(self, key: Key, old: Object | None, new: Object | None) -> None:
        replays = self._replays
        for registration in self._registrations:
            knowledge = replays.knows(registration, key) if replays else Knowledge.KNOWN
            if knowledge is Knowledge.KNOWN:
                registration.deliver(key, old, new)
            elif knowledge is Knowledge.NEW and new is not None:
                registration.deliver(key, None, new)

    def _wanted_fields(self) -> frozenset[str] | None:
        wanted: frozenset[str] = frozenset()
        for fields in self._fields:
            if fields is None:
                return None
            wanted = wanted | fields if wanted else fields
        return wanted or None

    def _newest(self, key: Key) -> Object | None:
        """The newest state that was told of; None for what went."""
        if self._keeps_objects:
            return self._indexer.get(*key)
        entry = self._entries.get(key[0], {}).get(key[1])
        source = self._find_source()
        return None if entry is None or source is None else self._object(source, entry)

    def _known(self) -> set[Key]:
        return {(namespace, name) for namespace, names in self._entries.items() for name in names}

    def _lose_all(self) -> None:
        self._synced.clear()
        for key in self._known():
            self._remove(key)

    def _mark_synced(self) -> None:
        self._all_told, self._is_complete = False, True
        self._synced.set()
        self._settle()

    # Those who come late

    def _settle(self) -> None:
        """Note who has heard of all that was there when he came."""
        if self._synced.is_set() and self._is_complete:
            for registration in self._registrations:
                registration.has_synced = registration not in self._replays
            if not self._replays:
                self._caught_up.set()

    def _tell_known(self, registration: Registration) -> None:
        """Tell a new handler of the objects that are kept."""
        self._replay(self._replays.add, registration, lambda key, obj: registration.deliver(key, None, obj))

    def _replay(self, add: Add, who: Hashable, tell: Tell, over: Callable[[], None] = lambda: None) -> None:
        """Tell of all objects that are kept: at once where they are few and indexes are whole, else in turns."""

        def end() -> None:
            over()
            self._settle()

        objects = self._indexer.list() if len(self._indexer) <= FEW else None
        if objects is None or (objects and add == self._replays.add and not self._gate.is_open):
            self._caught_up.clear()
            add(who, tell, end)
            return
        for obj in objects:
            tell(key_of(obj), obj)
        end()

    def _keep_objects(self) -> None:
        if not self._keeps_objects:
            self._keeps_objects, self._all_told = True, False
            self._catch_up()

    def _catch_up(self) -> None:
        """Keep what is known, and tell whoever came late of it: at once where that is little, else in turns."""
        source = self._find_source() if self._entries else None
        if source is None:
            return
        if source.prepare is None and sum(map(len, self._entries.values())) <= _SLICE:
            for names in self._entries.values():
                for entry in names.values():
                    self._complete(source, entry)
            return
        self._latecomers += 1
        self._is_complete = False
        self._caught_up.clear()
        if self._watcher is not None:
            self._watcher.stop()

    def _complete(self, source: Source, entry: Entry) -> None:
        """Do with a known state what was not done with it when it came."""
        key = (entry.namespace, entry.name)
        if self._keeps_objects:
            if self._indexer.get(*key) is None:
                obj = self._object(source, entry)
                self._indexer.put(obj)
                self._tell_late(key, obj)
        elif not (self._all_told or all(registration.has_synced for registration in self._registrations)):
            self._tell_late(key, self._object(source, entry))

    def _tell_late(self, key: Key, obj: Object) -> None:
        for registration in self._registrations:
            if not registration.has_synced and self._replays.knows(registration, key) is not Knowledge.LATER:
                registration.deliver(key, None, obj)
