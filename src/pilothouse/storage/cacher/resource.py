"""The cache of one resource: current entries in key order, the recent past, the watchers, and writes that go
through it.

Loaded when first used: a listing at some revision R, taken page by page off the loop, then every event after R.
From then on reads are synchronous. A write returns when its change has been applied here, so whoever wrote reads
what he wrote.

Of a resource with more than a page of objects only what selectors need is read while it is loaded; whoever wants the
data of many entries waits for ``read`` first. Long values are read aside (``reading.py``, ``backlog.py``).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pilothouse.machinery.workers import LONG
from pilothouse.storage.backends.contract import (
    Backend,
    Compacted,
    Event,
    Foreseen,
    KeyValue,
    Page,
    StorageError,
    Unavailable,
)
from pilothouse.storage.cacher.audience import Audience
from pilothouse.storage.cacher.backlog import Backlog
from pilothouse.storage.cacher.changes import Change, Matches
from pilothouse.storage.cacher.entries import Entry, EntryCodec
from pilothouse.storage.cacher.ordering import OrderedEntries
from pilothouse.storage.cacher.reading import EntryReader, Read, Turn, is_unread
from pilothouse.storage.cacher.store_calls import StoreCalls
from pilothouse.storage.cacher.tally import CacheTally
from pilothouse.storage.cacher.traits import Trait
from pilothouse.storage.cacher.value_indexes import ValueIndexes
from pilothouse.storage.cacher.watcher import PAGE, Watcher
from pilothouse.storage.cacher.window import Window, WindowLimits

if TYPE_CHECKING:
    from pilothouse.storage.cacher.cacher import Cacher

logger = logging.getLogger(__name__)

FirstLook = Callable[[Entry, Any], None]
"""Gets an entry and its object, which is nobody else's and has no resourceVersion. Must not raise."""
Hint = Callable[[int], Entry]
"""Makes the entry of a write from its revision, by someone who still has the decoded object."""

_LOAD_PAGE = 1000
_TELL_SECONDS = 2.0
"""A load that takes longer is told of in the log."""


@dataclass(slots=True)
class EntryPage:
    """Part of a listing as of a revision."""

    items: list[Entry]
    revision: int
    more: bool
    remaining: int


def _key_of(entry: Entry) -> str:
    return entry.key


def _is_hinted(event: Event) -> bool:
    """Whether there is no need to read what was stored."""
    return isinstance(event.origin, PendingWrite) and event.origin.hint is not None


class PendingWrite:
    """Travels with a write as its origin and brings back what the cache made of it."""

    __slots__ = ("cache", "change", "hint")

    def __init__(self, cache: ResourceCache, hint: Hint | None) -> None:
        self.cache, self.hint = cache, hint
        self.change: Change | None = None


class _Progress:
    """Tells the log how far a load is that takes long."""

    def __init__(self, prefix: str) -> None:
        self._prefix, self._told = prefix, time.perf_counter()

    def tell(self, count: int) -> None:
        if (now := time.perf_counter()) - self._told > _TELL_SECONDS:
            self._told = now
            logger.info("loading %s: %d objects so far", self._prefix, count)


class ResourceCache:
    """See the module's docstring. Made by `Cacher.resource`."""

    def __init__(self, cacher: Cacher, backend: Backend, prefix: str, codec: EntryCodec, limits: WindowLimits) -> None:
        self.prefix, self.codec = prefix, codec
        self.ready = False
        self.changed_revision = 0
        """The newest revision that may have touched this resource."""
        self._cacher, self._backend, self._limits = cacher, backend, limits
        self.calls = StoreCalls(backend)
        self.tally = CacheTally()
        self._reader = EntryReader(codec, self.tally)
        self._backlog = Backlog(self._reader, self._apply, self._spawn)
        self._index = OrderedEntries()
        self.indexes = ValueIndexes(self._is_current)
        self._window = self._new_window(0)
        self._audience = Audience(prefix)
        self._loaded = 0
        self._may_be_unread = False
        """Whether there may be entries whose data is still to be made."""
        self._arrived: list[Event] = []
        self._loading: asyncio.Task[None] | None = None
        self._first_looks: list[FirstLook] = []
        self._under_way: dict[str, list[asyncio.Future[None]]] = {}
        """Keys that are being written, and who waits for that."""

    def __len__(self) -> int:
        return len(self._index)

    def _new_window(self, revision: int) -> Window:
        return Window(revision, self._limits, self.__len__)

    @property
    def revision(self) -> int:
        """The newest revision of the whole store that reads from here reflect."""
        return self._backlog.reached if self._backlog.waiting else max(self._cacher.revision, self._loaded)

    @property
    def capacity(self) -> int:
        """How many changes the window holds at most."""
        return self._limits.changes

    # Reading

    async def wait_ready(self) -> None:
        """Load the resource if that has not happened yet. Raises StorageError when it cannot be read."""
        while not self.ready:
            self._cacher.require_open()
            if self._loading is None:
                self._loading = asyncio.get_running_loop().create_task(self._load())
            loading = self._loading
            await asyncio.wait([loading])
            if loading.cancelled():
                raise Unavailable("the watch cache was closed or started anew")
            loading.result()

    @contextmanager
    def shown_while_loading(self, look: FirstLook) -> Iterator[None]:
        """Within, show what is loaded of a large resource, as it is, together with the object read for it.

        That spares whoever needs something of every object to read them all a second time. Nothing is promised: an
        entry may not be shown at all, and one that was may be gone or replaced when the resource is loaded.
        """
        self._first_looks.append(look)
        try:
            yield
        finally:
            self._first_looks.remove(look)

    def _shown_entry(self, key: str, value: bytes, revision: int) -> Entry:
        entry, obj = self.codec.entry_and_object(key, value, revision)
        if obj is not None:
            for look in self._first_looks:
                look(entry, obj)
        return entry

    async def wait_for(self, revision: int, seconds: float | None = None) -> None:
        """Wait until reads reflect a revision. Raises FutureRevision when it has not come in time."""
        if not self.ready:
            await self.wait_ready()
        if revision > self.revision:
            began = time.perf_counter()
            try:
                await self._cacher.progress.reach(revision, seconds)
                await self._backlog.wait(revision)
            finally:
                self.tally.waits.observe(time.perf_counter() - began)

    def is_fresh(self) -> bool:
        """Whether reads reflect everything that anybody has acknowledged by now, as far as can be told at once."""
        unseen = self._backend.unseen_revision()
        return self.ready and unseen is not None and unseen <= self.revision

    async def wait_fresh(self, foreseen: Foreseen | None = None) -> None:
        """Wait until reads reflect everything acknowledged before this call; returns at once in a single process.

        Or before ``foreseen`` was begun, by somebody who is content with that.
        """
        if self.is_fresh():
            return
        if not self.ready:
            await self.wait_ready()
            if self.is_fresh():
                return
        tally = self.tally
        tally.consistent_reads += 1
        try:
            await self.wait_for(await self.calls.current_revision(foreseen))
        except BaseException:
            tally.failed_reads += 1
            raise

    def get(self, key: str) -> Entry | None:
        entry = self._index.get(key)
        if self._may_be_unread and entry is not None and not self._is_readable(entry):
            return None
        return entry

    def entries(self, prefix: str | None = None, start: str | None = None, limit: int = 0) -> list[Entry]:
        """Entries in key order, from a key on, as they are now: the list does not change afterwards."""
        low, high = self._range(prefix, start)
        return self._index.between(low, high, limit)

    def entries_having(self, trait: Trait | None, prefix: str | None = None) -> list[Entry]:
        """Likewise, all that have a trait and maybe others: whoever asks looks at what is returned."""
        low, high = self._range(prefix, None)
        if trait is not None:
            found = self.indexes.find(trait, self._index.count(low, high), len(self._index))
            if found is not None:
                return sorted([entry for entry in found if low <= entry.key < high], key=_key_of)
        return self._index.between(low, high)

    async def read(self, entries: list[Entry]) -> list[Entry]:
        """Have the data of entries made, in turns with others; returns those whose data can be."""
        if not self._may_be_unread:
            return entries
        bad = await self._reader.make_data(entries)
        for entry in bad:
            self._leave_out(entry)
        if len(entries) >= len(self._index):
            self._may_be_unread = any(map(is_unread, self.entries()))
        return [entry for entry in entries if entry not in bad] if bad else entries

    def _is_readable(self, entry: Entry) -> bool:
        """Read an entry; what cannot be read leaves the cache, as if it had been tried while it was loaded."""
        if self._reader.has_data(entry):
            return True
        self._leave_out(entry)
        return False

    def _leave_out(self, entry: Entry) -> None:
        if self._is_current(entry):
            self._index.remove(entry.key)
            self.indexes.change(entry, None)

    def _is_current(self, entry: Entry) -> bool:
        return self._index.get(entry.key) is entry

    def count(self, prefix: str | None = None, start: str | None = None) -> int:
        return self._index.count(*self._range(prefix, start))

    def unchanged_since(self, revision: int, prefix: str | None = None) -> bool:
        """Whether what is in memory below a prefix is also the state as of a past revision that the store remembers."""
        if revision < self._cacher.compacted:
            return False
        if self.changed_revision <= revision:
            return True
        return not self._window.touched_since(revision, prefix or self.prefix)

    async def entries_at(
        self, revision: int, prefix: str | None = None, start: str | None = None, limit: int = 0
    ) -> EntryPage:
        """Read a listing as of a past revision from the backend. Raises Compacted, FutureRevision."""
        page = await self.calls.list(prefix or self.prefix, start=start, limit=limit, revision=revision)
        return EntryPage(await self._reader.read_all(page.items), page.revision, page.more, page.remaining)

    async def get_at(self, key: str, revision: int) -> Entry | None:
        """Read one object as of a past revision from the backend. Raises Compacted, FutureRevision."""
        found = await self.calls.get(key, revision)
        return None if found is None else await self._reader.read_or_raise(found)

    async def stored(self, key: str) -> KeyValue | None:
        """What is stored for an object now, as it was written."""
        return await self.calls.get(key, 0)

    # Writing

    async def create(self, key: str, value: bytes, ttl: int | None = None, hint: Hint | None = None) -> Entry:
        """Write a new object and return its entry. Raises KeyExists."""
        if not self.ready:
            await self.wait_ready()
        pending = PendingWrite(self, hint)
        revision = await self.calls.create(key, value, ttl, pending)
        change = pending.change  # which has come already, unless others wrote as well
        if change is not None and change.entry is not None:
            return change.entry
        return await self._written(pending, key, value, revision)

    async def update(
        self, key: str, value: bytes, expected: int, ttl: int | None = None, hint: Hint | None = None
    ) -> Entry:
        """Replace an object that stands at a revision and return its entry. Raises Conflict."""
        if not self.ready:
            await self.wait_ready()
        pending = PendingWrite(self, hint)
        self._under_way.setdefault(key, [])
        try:
            revision = await self.calls.update(key, value, expected, ttl, pending)
        finally:
            self._settle(key)
        change = pending.change
        if change is not None and change.entry is not None:
            return change.entry
        return await self._written(pending, key, value, revision)

    def _settle(self, key: str) -> None:
        for waiting in self._under_way.pop(key, ()):
            if not waiting.done():
                waiting.set_result(None)

    def is_being_written(self, key: str) -> bool:
        """Whether somebody in this process replaces the object just now: who begins a change had better wait."""
        return key in self._under_way

    async def wait_settled(self, key: str) -> None:
        """Wait until nobody replaces the object any more. Those who wait go on one after the other.

        Whoever goes on first makes his change from what was written, and so on: a change made from what is about to be
        replaced would only meet a conflict, and many who change one object would make each change many times.
        """
        while (others := self._under_way.get(key)) is not None:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            others.append(waiting)
            await waiting

    async def delete(self, key: str, expected: int) -> Entry:
        """Delete an object and return its last state under the revision of the deletion. Raises Conflict."""
        if not self.ready:
            await self.wait_ready()
        before = self._index.get(key)
        pending = PendingWrite(self, None)
        revision = await self.calls.delete(key, expected, pending)
        last = pending.change.last_state() if pending.change is not None else None
        if last is not None:
            return last
        await self.wait_for(revision)
        if before is None or before.revision != expected:
            before = await self.get_at(key, expected)
        if before is None:
            raise StorageError(f"the last state of {key!r} is not known")
        return self.codec.restamp(before, revision)

    # Watching

    async def watch(
        self,
        prefix: str | None = None,
        after: int | None = None,
        matches: Matches | None = None,
        *,
        trait: Trait | None = None,
        bookmarks: bool = False,
        initial: bool = False,
        deadline: float | None = None,
        limit: int = 1000,
        client: str = "",
    ) -> Watcher:
        """Watch a prefix or one key, from now or after a revision. Raises Compacted.

        With `initial` the current objects come first, as ADDED, and then a bookmark that says so (if bookmarks are
        wanted); `after` must then be None. A `trait`, where `matches` implies one, spares the watch being asked about
        changes that cannot concern it. `deadline` is on the cacher's clock. A watch with a `client` is one of the
        server's clients: it ends when the server is about to stop.
        """
        if not self.ready:
            await self.wait_ready()
        prefix = prefix or self.prefix
        snapshot = self._snapshot(prefix, trait) if initial else None
        if snapshot:
            self.tally.initial_events += len(snapshot)
        position = self.revision if after is None else after
        watcher = Watcher(
            self,
            prefix,
            position,
            matches,
            trait=trait,
            bookmarks=bookmarks,
            deadline=deadline,
            initial=snapshot,
            limit=limit,
            client=client,
        )
        await watcher.catch_up()
        if watcher.error is not None:
            raise watcher.error
        if bookmarks:
            self._cacher.schedule_bookmarks(watcher)
        if client:
            self._cacher.serve(watcher)
        return watcher

    def join(self, watcher: Watcher) -> Sequence[Change] | None:
        if not self.ready:
            raise Unavailable("the watch cache was closed or started anew")
        missed = self._window.since(watcher.position)
        if missed is None:
            return None
        if len(missed) > watcher.limit // 2:
            return missed[: max(1, watcher.limit // 2)]
        self._audience.add(watcher)
        watcher.go_live()
        return missed

    def leave(self, watcher: Watcher) -> None:
        self._audience.discard(watcher)
        self._cacher.forget(watcher)

    async def read_history(self, prefix: str, after: int) -> tuple[list[Change], int]:
        page = await self._backend.history(prefix, after, PAGE)
        changes: list[Change] = []
        turn = Turn()
        for event in page.events:
            before = event.previous
            previous = None if before is None else await self._reader.read(before, turn)
            entry = await self._reader.read_event(event, turn)
            changes.append(Change(event.key, event.revision, entry, previous, self.codec, 0.0))
        return changes, page.revision

    # Following the feed; called by the cacher

    def apply(self, event: Event, now: float) -> None:
        """Take over one change of the log."""
        if not self.ready:
            if self._loading is not None:
                self._arrived.append(event)
            return
        if event.revision <= self._loaded:
            return
        is_long = event.value is not None and len(event.value) >= LONG and not _is_hinted(event)
        if is_long or self._backlog.waiting:
            self._backlog.add(event, is_long=is_long)
        else:
            self._apply(event, None, now)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._cacher.supervise(f"reading long values of {self.prefix}", work, self._give_up)

    def _give_up(self, error: BaseException) -> None:
        """What was to be applied is lost: all of it is read anew."""
        self.reset(Compacted(self.revision, self.revision))

    def _apply(self, event: Event, entry: Entry | None, now: float | None = None) -> None:
        """Take over a change whose turn it is; a long value comes as the entry that was made of it."""
        if event.value is None:
            previous = self._index.remove(event.key)
        else:
            if entry is None:
                entry = self._entry_of(event)
            if entry is None:
                return
            previous = self._index.put(entry)
        now = self._cacher.now() if now is None else now
        self.indexes.change(previous, entry)
        change = Change(event.key, event.revision, entry, previous, self.codec, now)
        self.tally.events += 1
        self.changed_revision = event.revision
        origin = event.origin
        if isinstance(origin, PendingWrite):
            origin.change = change
        self._window.append(change)
        self._audience.dispatch(change)

    def trim(self, now: float) -> None:
        self._window.trim(now)

    async def keep_up_indexes(self) -> None:
        """Build and drop indexes, as they are used."""
        await self.indexes.keep_up(self.entries, len(self._index))

    def reset(self, error: StorageError) -> None:
        """Forget everything after the feed broke: watchers end, the next use loads again."""
        for watcher in self._audience:
            watcher.end(error)
        self.cancel_loading()
        self._backlog.clear(error)
        self.ready = False
        self._loaded = self.changed_revision = 0
        self._may_be_unread = False
        self._index = OrderedEntries()
        self.indexes.clear()
        self._window = self._new_window(0)

    def cancel_loading(self) -> asyncio.Task[None] | None:
        loading, self._loading = self._loading, None
        self._arrived = []
        if loading is not None:
            loading.cancel()
        return loading

    async def _load(self) -> None:
        try:
            while not self.ready:
                try:
                    await self._load_once()
                except Compacted:
                    continue
        finally:
            self._loading = None
            self._arrived = []

    async def _load_once(self) -> None:
        began = time.perf_counter()
        first = await self.calls.list(self.prefix, limit=_LOAD_PAGE, counted=False)
        revision = first.revision
        read = self.codec.entry
        if first.more:
            read = self._shown_entry if self._first_looks else self.codec.unread_entry
        entries = await self._read_pages(first, revision, read)
        self._index.fill(entries)
        self._may_be_unread = any(map(is_unread, entries))
        self._window = self._new_window(revision)
        self._loaded = self.changed_revision = revision
        self.ready = True
        self.tally.loads.observe(time.perf_counter() - began)
        arrived, self._arrived = self._arrived, []
        for event in arrived:
            self.apply(event, self._cacher.now())

    async def _read_pages(self, first: Page, revision: int, read: Read) -> list[Entry]:
        """All pages; each is on its way while the one before it is read."""
        entries: list[Entry] = []
        progress = _Progress(self.prefix)
        page: Page | None = first
        while page is not None:
            progress.tell(len(entries))
            following = asyncio.ensure_future(self._page_after(page, revision))
            try:
                entries += await self._reader.read_all(page.items, read)
                page = await following
            finally:
                if not following.done():
                    following.cancel()
                    await asyncio.wait([following])
        return entries

    async def _page_after(self, page: Page, revision: int) -> Page | None:
        if not page.more:
            return None
        start = page.items[-1].key + "\0"
        return await self.calls.list(self.prefix, start=start, limit=_LOAD_PAGE, revision=revision, counted=False)

    def _entry_of(self, event: Event) -> Entry | None:
        origin = event.origin
        if isinstance(origin, PendingWrite) and origin.hint is not None:
            try:
                return origin.hint(event.revision)
            except Exception:
                logger.exception("the hint for %s failed; its stored bytes are decoded instead", event.key)
        return self._reader.read_now(event.key, event.value or b"", event.revision)

    async def _written(self, pending: PendingWrite, key: str, value: bytes, revision: int) -> Entry:
        await self.wait_for(revision)
        entry = self._index.get(key)
        if entry is not None and entry.revision == revision:
            return entry
        if pending.hint is not None:
            return pending.hint(revision)
        return await self._reader.read_or_raise(KeyValue(key, value, revision, 0))

    def _snapshot(self, prefix: str, trait: Trait | None) -> list[Entry]:
        """What a streamed list begins with, last first, so that pages can be taken from the end."""
        entries = self.entries_having(trait, prefix)
        entries.reverse()
        return entries

    def _range(self, prefix: str | None, start: str | None) -> tuple[str, str]:
        prefix = prefix or self.prefix
        high = prefix[:-1] + "0" if prefix.endswith("/") else prefix + "\0"
        return max(prefix, start or ""), high
