import asyncio
import threading
import tracemalloc

import orjson
import pytest

from pilothouse.machinery.supervision import RestartPolicy, Supervisor
from pilothouse.machinery.workers import LONG
from pilothouse.net.work_turns import PLACES
from pilothouse.storage.backends.contract import Compacted, Event, FutureRevision, KeyValue, Page, Unavailable
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.storage.cacher import Cacher
from pilothouse.storage.cacher.entries import Entry, UnreadEntry
from pilothouse.storage.cacher.ordering import OrderedEntries
from pilothouse.storage.cacher.traits import Attribute, Trait
from pilothouse.testing.cacher_conformance import LabelledCodec, take_watched
from pilothouse.testing.storage_conformance import PODS


class Feed:
    def __init__(self, revision):
        self.revision = revision

    def close(self):
        pass


class RemoteBackend:
    """Like a store over a network: listings take their time, events come when they come, and carry no origin."""

    name = "remote"

    def __init__(self, items=(), revision=1):
        self.items, self.revision = list(items), revision
        self.listing = asyncio.Event()
        self.listing.set()
        self.failures = []
        self.follower = None

    def follow(self, follower):
        self.follower = follower
        return Feed(self.revision)

    async def list(self, prefix, *, start=None, limit=0, revision=0, counted=True):
        page = [item for item in self.items if item.key >= (start or "")]
        at = self.revision
        await self.listing.wait()
        if self.failures:
            raise self.failures.pop()
        return Page(page[:limit], at, len(page) > limit, -1)

    async def create(self, key, value, ttl_seconds=None, origin=None):
        self.revision += 1
        return self.revision

    async def delete(self, key, expected, origin=None):
        self.revision += 1
        return self.revision

    async def current_revision(self):
        return self.revision

    def unseen_revision(self):
        return None

    def tell(self, *events):
        self.revision = max(self.revision, *(event.revision for event in events))
        self.follower.receive(events, self.revision)


def item(name, revision):
    return KeyValue(f"{PODS}a/{name}", b"{}", revision, revision)


def event(name, revision, value=b"{}", created=True):
    return Event(f"{PODS}a/{name}", revision, value, created)


async def cache_on(backend):
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    return cacher, cacher.resource(PODS, LabelledCodec())


def names(cache):
    return {entry.name: entry.revision for entry in cache.entries()}


async def test_events_during_loading_are_applied_after_it_and_once():
    backend = RemoteBackend([item("both", 7), item("old", 5)], revision=7)
    backend.listing.clear()
    cacher, pods = await cache_on(backend)
    loading = asyncio.create_task(pods.wait_ready())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    backend.tell(event("both", 7), event("new", 8), event("old", 9, None, False))
    assert not pods.ready
    backend.listing.set()
    await loading
    assert names(pods) == {"both": 7, "new": 8}
    assert pods.revision == 9
    watcher = await pods.watch(after=7)
    assert [each.revision for each in await take_watched(watcher, 2)] == [8, 9]
    await cacher.close()


async def test_a_listing_ahead_of_the_feed_is_not_undone_by_it():
    backend = RemoteBackend(revision=4)
    cacher, pods = await cache_on(backend)
    backend.items, backend.revision = [item("a", 6)], 6
    await pods.wait_ready()
    assert pods.revision == 6
    watcher = await pods.watch()
    backend.tell(event("gone", 5))
    backend.tell(event("a", 6))
    backend.tell(event("b", 7))
    assert names(pods) == {"a": 6, "b": 7}
    assert [each.revision for each in await take_watched(watcher, 1)] == [7]
    await cacher.close()


async def test_loading_is_tried_again_after_a_failure():
    backend = RemoteBackend([item("a", 2)], revision=2)
    backend.failures = [Compacted(1, 2), Unavailable("down")]
    cacher, pods = await cache_on(backend)
    with pytest.raises(Unavailable):
        await pods.wait_ready()
    await asyncio.gather(pods.wait_ready(), pods.wait_ready())
    assert names(pods) == {"a": 2}
    await cacher.close()


async def test_a_write_returns_when_the_cache_has_it_even_without_an_origin():
    backend = RemoteBackend(revision=4)
    cacher, pods = await cache_on(backend)
    writing = asyncio.create_task(pods.create(f"{PODS}a/x", b"{}"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writing.done()
    backend.tell(event("x", 5))
    assert await writing is pods.get(f"{PODS}a/x")
    deleting = asyncio.create_task(pods.delete(f"{PODS}a/x", 5))
    for _ in range(10):
        await asyncio.sleep(0)
    backend.tell(event("x", 6, None, False))
    assert (await deleting).revision == 6
    await cacher.close()


async def test_freshness_is_asked_for_when_it_cannot_be_known():
    backend = RemoteBackend(revision=4)
    cacher, pods = await cache_on(backend)
    await pods.wait_ready()
    backend.revision = 5
    waiting = asyncio.create_task(pods.wait_fresh())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    backend.tell(event("x", 5))
    await waiting
    with pytest.raises(FutureRevision) as caught:
        await pods.wait_for(9, 0)
    assert caught.value.current == 5
    await cacher.close()


async def test_a_feed_that_lost_its_place_starts_anew():
    backend = RemoteBackend([item("a", 2)], revision=2)
    cacher, pods = await cache_on(backend)
    watcher = await pods.watch()
    backend.items, backend.revision = [item("b", 9)], 9
    backend.follower.fail(Compacted(2, 8))
    assert await watcher.next_batch() == []
    assert isinstance(watcher.error, Compacted)
    await pods.wait_ready()
    assert names(pods) == {"b": 9}
    await cacher.close()


async def test_closing_releases_everybody():
    backend = RemoteBackend(revision=2)
    backend.listing.clear()
    cacher, pods = await cache_on(backend)
    loading = asyncio.create_task(pods.wait_ready())
    for _ in range(3):
        await asyncio.sleep(0)
    await cacher.close()
    with pytest.raises(Unavailable):
        await loading
    with pytest.raises(Unavailable):
        await pods.wait_ready()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_damaged_object_is_left_out_and_reported(caplog):
    backend = RemoteBackend([item("a", 2), KeyValue(f"{PODS}a/bad", b"{", 3, 3)], revision=3)
    cacher, pods = await cache_on(backend)
    await pods.wait_ready()
    backend.tell(event("worse", 4, b"]"), event("c", 5))
    assert names(pods) == {"a": 2, "c": 5}
    assert "cannot decode /registry/pods/a/bad" in caplog.text
    await cacher.close()


async def test_events_go_to_the_innermost_resource():
    cacher, services = await cache_on(RemoteBackend(revision=2))
    specs = cacher.resource(f"{PODS}specs/", LabelledCodec())
    await asyncio.gather(services.wait_ready(), specs.wait_ready())
    cacher.receive([Event(f"{PODS}specs/a/x", 3, b"{}", True), Event("/elsewhere", 4, b"{}", True)], 4)
    assert (len(services), len(specs), services.revision) == (0, 1, 4)
    cacher.drop(f"{PODS}specs/")
    cacher.receive([Event(f"{PODS}specs/a/y", 5, b"{}", True)], 5)
    assert len(services) == 1
    await cacher.close()


@pytest.fixture
async def pods(tmp_path):
    backend = SQLiteBackend(str(tmp_path / "store.db"), upkeep_seconds=0)
    await backend.open()
    cacher, pods = await cache_on(backend)
    yield pods
    await cacher.close()
    await backend.close()


async def test_a_hint_saves_decoding(pods):
    made = []

    def hint(revision):
        made.append(Entry(f"{PODS}a/x", b"made", revision))
        return made[-1]

    assert await pods.create(f"{PODS}a/x", b"not json", hint=hint) is pods.get(f"{PODS}a/x") is made[0]
    assert len(made) == 1


async def test_a_failing_hint_is_replaced_by_decoding(pods, caplog):
    entry = await pods.create(f"{PODS}a/x", b"{}", hint=lambda revision: 1 / 0)
    assert orjson.loads(entry.data)["metadata"]["resourceVersion"] == "2"


async def test_reads_in_order_by_prefix_start_and_limit(pods):
    for name in ("b/1", "a/1", "ab/1", "a/2", "a/3"):
        await pods.create(PODS + name, b"{}")
    keys = [entry.key.removeprefix(PODS) for entry in pods.entries()]
    assert keys == ["a/1", "a/2", "a/3", "ab/1", "b/1"]
    page = pods.entries(f"{PODS}a/", f"{PODS}a/1\0", 1)
    assert [entry.name for entry in page] == ["2"]
    assert (pods.count(), pods.count(f"{PODS}a/"), pods.count(f"{PODS}a/", f"{PODS}a/2")) == (5, 3, 2)
    assert [entry.name for entry in pods.entries(f"{PODS}a/2")] == ["2"], "a key is a prefix of itself only"


async def test_the_past_is_served_from_memory_while_nothing_changed(pods):
    await pods.create(f"{PODS}a/1", b"{}")
    revision = pods.revision
    assert pods.unchanged_since(revision)
    await pods.create(f"{PODS}b/1", b"{}")
    assert not pods.unchanged_since(revision)
    assert pods.unchanged_since(revision, f"{PODS}a/")
    page = await pods.entries_at(revision)
    assert [entry.key for entry in page.items] == [f"{PODS}a/1"]
    assert (page.revision, page.more, page.remaining) == (revision, False, 0)
    assert await pods.get_at(f"{PODS}b/1", revision) is None


async def test_freshness_in_a_single_process_needs_no_waiting(pods):
    await pods.create(f"{PODS}a/1", b"{}")
    waiting = pods.wait_fresh()
    with pytest.raises(StopIteration):
        waiting.send(None)


def test_an_entry_costs_little_beyond_its_bytes():
    tracemalloc.start()
    try:
        ordered = OrderedEntries()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2000):
            name = f"web-5d4f8c7b9d-{number:05}"
            ordered.put(Entry(f"{PODS}default/{name}", bytes(600), 10**6 + number, "default", name))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used / 2000 - 600 < 400


async def test_a_clock_that_is_killed_ticks_on():
    supervisor = Supervisor("test", policy=RestartPolicy(first_seconds=0.001))
    cacher = Cacher(RemoteBackend(), tick_seconds=0.001, supervisor=supervisor)
    ticked = asyncio.Event()
    cacher.tick = ticked.set
    await cacher.open()
    await ticked.wait()
    for task in asyncio.all_tasks():
        if task.get_name() == "clock of the watch caches":
            task.cancel()
    await asyncio.sleep(0)
    ticked.clear()
    async with asyncio.timeout(120):
        await ticked.wait()
    await cacher.close()
    await supervisor.close()


def unread(entries):
    return [entry for entry in entries if isinstance(entry, UnreadEntry) and entry.stored is not None]


async def loaded_with_many(bad=()):
    backend = RemoteBackend(
        [KeyValue(f"{PODS}ns/p{n:05}", b"bad" if n in bad else b'{"n":"%d"}' % n, n + 1, n + 1) for n in range(1500)],
        revision=2000,
    )
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    pods = cacher.resource(PODS, LateCodec())
    await pods.wait_ready()
    return cacher, pods


class LateCodec(LabelledCodec):
    """Sees only later that a value cannot be read."""

    def unread_entry(self, key, value, revision):
        labels = b"{}" if value == b"bad" else value
        return UnreadEntry(self, key, value, revision, "ns", key[-6:], orjson.loads(labels), {})


async def test_many_are_loaded_unread_and_read_in_turns():
    cacher, pods = await loaded_with_many()
    entries = pods.entries()
    assert len(unread(entries)) == len(pods) == 1500
    assert [entry.labels["n"] for entry in entries[:3]] == ["0", "1", "2"]
    turns = 0

    async def count_turns():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count_turns())
    assert await pods.read(entries[:1000]) == entries[:1000]
    counting.cancel()
    assert turns >= 20 // PLACES
    assert len(unread(entries)) == 500
    assert pods.get(entries[-1].key).data == LabelledCodec().entry(entries[-1].key, b'{"n":"1499"}', 1500).data
    assert len(unread(entries)) == 499
    await pods.read(entries)
    assert unread(entries) == []
    await cacher.close()


async def test_what_turns_out_to_be_damaged_leaves_the_cache(caplog):
    cacher, pods = await loaded_with_many(bad={7, 1200, 1400})
    entries = pods.entries()
    assert pods.get(entries[7].key) is None
    watcher = await pods.watch(initial=True, bookmarks=True)
    seen = [event.entry.key for event in await take_watched(watcher, 1498) if event.type == "ADDED"]
    assert len(seen) == 1497
    assert entries[1200].key not in seen
    assert len(pods) == 1497
    assert pods.tally.decode_errors == 3
    assert await pods.read(entries) == [entry for entry in entries if entry not in unread(entries)]
    assert "cannot decode" in caplog.text
    await cacher.close()


async def test_changes_of_what_was_never_read_do_not_read_it():
    cacher, pods = await loaded_with_many()
    before = pods.entries()[5]
    watcher = await pods.watch(matches=lambda entry: entry.labels.get("n") in ("5", "new"))
    cacher.receive([Event(before.key, 2001, b'{"n":"new"}', False)], 2001)
    (event,) = await take_watched(watcher, 1)
    assert (event.type, event.previous) == ("MODIFIED", before)
    assert unread([before]) == [before]
    cacher.receive([Event(before.key, 2002, None, False)], 2002)
    (event,) = await take_watched(watcher, 1)
    assert (event.type, event.entry.revision) == ("DELETED", 2002)
    await cacher.close()


def labelled(number, revision, app):
    return KeyValue(f"{PODS}ns-{1 - number // 1000 % 2}/{number:04}", orjson.dumps({"app": app}), revision, revision)


async def test_lists_by_one_value_look_at_few_once_that_pays():
    apps = [f"app-{number % 1000}" for number in range(3000)]
    backend = RemoteBackend([labelled(number, number + 1, app) for number, app in enumerate(apps)], 3000)
    backend.items.sort(key=lambda each: each.key)
    cacher, pods = await cache_on(backend)
    await pods.wait_ready()
    trait = Trait(Attribute("app", is_label=True), "app-7")
    for _ in range(8):
        assert len(pods.entries_having(trait)) == 3000
    await pods.keep_up_indexes()
    found = [f"{PODS}ns-0/1007", f"{PODS}ns-1/0007", f"{PODS}ns-1/2007"]
    assert [entry.key for entry in pods.entries_having(trait)] == found
    new = labelled(1006, 3001, "app-7")
    backend.tell(
        Event(new.key, 3001, new.value, False),
        Event(f"{PODS}ns-1/0007", 3002, None, False),
        Event(f"{PODS}ns-0/1007", 3003, b'{"app":"other"}', False),
    )
    found = [f"{PODS}ns-0/1006", f"{PODS}ns-1/2007"]
    assert [entry.key for entry in pods.entries_having(trait)] == found
    watcher = await pods.watch(matches=lambda entry: entry.labels["app"] == "app-7", trait=trait, initial=True)
    assert [event.entry.key for event in await take_watched(watcher, 2)] == found
    few = pods.entries_having(trait, f"{PODS}ns-1/")
    assert len(few) == 1999  # so few are looked at
    await cacher.close()
    assert pods.indexes.attributes == []


class GatedCodec(LabelledCodec):
    """Long values are read when they are let."""

    def __init__(self):
        self.gate = threading.Event()

    def entry(self, key, value, revision):
        if len(value) >= LONG:
            self.gate.wait()
        return super().entry(key, value, revision)


LONG_VALUE = orjson.dumps({"long": "x" * LONG})


async def cache_with_gate():
    backend = RemoteBackend([item("a", 2)], revision=2)
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    pods, others = cacher.resource(PODS, GatedCodec()), cacher.resource("/registry/services/", LabelledCodec())
    await pods.wait_ready()
    backend.items = []
    await others.wait_ready()
    return backend, cacher, pods, others


async def test_long_values_of_others_hold_up_their_own_resource_only():
    backend, cacher, pods, others = await cache_with_gate()
    watcher = await pods.watch(bookmarks=True)
    cacher.tick()
    backend.tell(event("b", 3, LONG_VALUE))
    backend.tell(event("a", 4, None, False))
    backend.tell(Event("/registry/services/a/s", 5, b"{}", created=True))
    assert (pods.revision, others.revision) == (2, 5)
    assert names(others) == {"s": 5}
    await others.wait_fresh()
    reading = asyncio.ensure_future(pods.wait_fresh())
    writing = asyncio.ensure_future(pods.create(f"{PODS}a/c", b"{}"))
    await asyncio.sleep(0)
    watcher.offer_bookmark(watcher.offered)
    assert not reading.done()
    assert names(pods) == {"a": 2}
    pods.codec.gate.set()
    await reading
    assert names(pods) == {"b": 3}
    assert pods.revision == 5
    seen = [(each.type, each.revision) for each in await take_watched(watcher, 3)]
    assert seen == [("BOOKMARK", 2), ("ADDED", 3), ("DELETED", 4)]
    backend.tell(event("c", 6))
    assert (await writing).revision == 6
    await cacher.close()


async def test_who_waits_for_a_long_value_is_told_when_the_cache_begins_anew():
    backend, cacher, pods, _ = await cache_with_gate()
    backend.tell(event("b", 3, LONG_VALUE))
    reading = asyncio.ensure_future(pods.wait_for(3))
    await asyncio.sleep(0)
    backend.items, backend.revision = [item("d", 9)], 9
    cacher.fail(Compacted(3, 9))
    with pytest.raises(Compacted):
        await reading
    pods.codec.gate.set()
    await pods.wait_ready()
    assert names(pods) == {"d": 9}
    backend.tell(event("e", 10, LONG_VALUE))
    await pods.wait_for(10)
    assert names(pods) == {"d": 9, "e": 10}
    await cacher.close()


async def test_long_values_come_while_a_resource_is_loaded():
    backend = RemoteBackend([KeyValue(f"{PODS}a/a", LONG_VALUE, 2, 2), item("b", 3)], revision=3)
    backend.listing.clear()
    cacher = Cacher(backend, tick_seconds=0)
    await cacher.open()
    pods = cacher.resource(PODS, GatedCodec())
    pods.codec.gate.set()
    loading = asyncio.create_task(pods.wait_ready())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    backend.tell(event("b", 4, LONG_VALUE, False), event("c", 5))
    backend.listing.set()
    await loading
    await pods.wait_for(5)
    assert names(pods) == {"a": 2, "b": 4, "c": 5}
    await cacher.close()
