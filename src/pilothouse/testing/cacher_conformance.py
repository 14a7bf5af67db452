"""What the watch cache must do over every storage backend, as tests to inherit; see `storage_conformance`."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from pilothouse.storage.backends.contract import Backend, Compacted
from pilothouse.storage.cacher import NOTHING, Cacher, Entry, UnreadEntry, Watcher, WatchEvent, restamp_json
from pilothouse.testing.storage_conformance import PODS, Harness, refused, soon


class LabelledCodec:
    """Stored bytes are the labels of an object, as JSON."""

    def entry(self, key: str, value: bytes, revision: int) -> Entry:
        labels = orjson.loads(value)
        data = orjson.dumps({"metadata": {"labels": labels, "resourceVersion": str(revision)}})
        namespace, name = key.split("/")[-2:]
        return Entry(key, data, revision, namespace, name, labels)

    def unread_entry(self, key: str, value: bytes, revision: int) -> Entry:
        namespace, name = key.split("/")[-2:]
        return UnreadEntry(self, key, value, revision, namespace, name, orjson.loads(value), NOTHING)

    def entry_and_object(self, key: str, value: bytes, revision: int) -> tuple[Entry, Any]:
        return self.entry(key, value, revision), {"metadata": {"labels": orjson.loads(value)}}

    def data_of(self, value: bytes, revision: int) -> bytes:
        return self.entry("//", value, revision).data

    def restamp(self, entry: Entry, revision: int) -> Entry:
        data = restamp_json(entry.data, entry.revision, revision)
        return Entry(entry.key, data, revision, entry.namespace, entry.name, entry.labels, entry.fields)


async def take_watched(watcher: Watcher, count: int) -> list[WatchEvent]:
    """The next events of a cached watch, exactly this many."""
    events: list[WatchEvent] = []
    while len(events) < count:
        batch = await soon(watcher.next_batch())
        assert batch, f"the watch ended after {len(events)} events: {watcher.error}"
        events.extend(batch)
    assert len(events) == count
    return events


class CacherConformance:
    """The watch cache over a backend keeps the backend's promises."""

    async def test_a_writer_reads_what_he_wrote(self, harness: Harness) -> None:
        store = await harness.open()
        cacher = Cacher(store)
        await cacher.open()
        pods = cacher.resource(PODS, LabelledCodec())
        created = await pods.create(f"{PODS}a/1", b'{"x":"1"}')
        assert pods.get(f"{PODS}a/1") is created
        updated = await pods.update(f"{PODS}a/1", b'{"x":"2"}', created.revision)
        assert pods.entries() == [updated]
        assert pods.revision >= updated.revision
        deleted = await pods.delete(f"{PODS}a/1", updated.revision)
        assert pods.entries() == []
        assert deleted.data == b'{"metadata":{"labels":{"x":"2"},"resourceVersion":"4"}}'
        await cacher.close()

    async def test_two_caches_on_one_store_agree(self, harness: Harness) -> None:
        stores = [await harness.open(), await harness.open()]
        cachers = [Cacher(store) for store in stores]
        for cacher in cachers:
            await cacher.open()
        here, there = (cacher.resource(PODS, LabelledCodec()) for cacher in cachers)
        await there.wait_ready()
        for number in range(20):
            entry = await here.create(f"{PODS}a/{number:02}", b"{}")
            await soon(there.wait_fresh())
            found = there.get(entry.key)
            assert found is not None
            assert (found.revision, found.data) == (entry.revision, entry.data)
            here, there = there, here
        for cacher in cachers:
            await cacher.close()

    async def test_cached_watches_are_complete_ordered_unique_and_resumable(self, harness: Harness) -> None:
        store, other = await harness.open(), await harness.open()
        cacher = Cacher(store)
        await cacher.open()
        pods = cacher.resource(PODS, LabelledCodec())
        early = await pods.watch()
        await soon(asyncio.gather(scramble_labels(store, "a", 40), scramble_labels(other, "b", 40)))
        live = await take_watched(early, 80)
        assert [event.revision for event in live] == list(range(2, 82))
        late = cacher.resource("/registry/", LabelledCodec())
        for resource in (pods, late):
            for after in (1, 7, 40, 80):
                resumed = await take_watched(await resource.watch(PODS, after), 81 - after)
                assert [told(event) for event in resumed] == [told(event) for event in live if event.revision > after]
        await cacher.close()

    async def test_selectors_decide_what_a_change_looks_like(self, harness: Harness) -> None:
        store = await harness.open()
        cacher = Cacher(store)
        await cacher.open()
        pods = cacher.resource(PODS, LabelledCodec())
        red = await pods.watch(matches=lambda entry: entry.labels.get("colour") == "red")
        await pods.create(f"{PODS}a/1", b'{"colour":"blue"}')
        await pods.update(f"{PODS}a/1", b'{"colour":"red"}', 2)
        await pods.update(f"{PODS}a/1", b'{"colour":"red","x":"y"}', 3)
        await pods.update(f"{PODS}a/1", b'{"colour":"blue"}', 4)
        await pods.update(f"{PODS}a/1", b'{"colour":"red"}', 5)
        await pods.delete(f"{PODS}a/1", 6)
        events = await take_watched(red, 5)
        expected = [("ADDED", 3), ("MODIFIED", 4), ("DELETED", 5), ("ADDED", 6), ("DELETED", 7)]
        assert [(event.type, event.revision) for event in events] == expected
        assert events[2].entry.labels == {"colour": "red", "x": "y"}
        again = await take_watched(await pods.watch(after=1, matches=red.matches), 5)
        assert [told(event) for event in again] == [told(event) for event in events]
        await cacher.close()

    async def test_bookmarks_follow_all_events_before_them(self, harness: Harness) -> None:
        clock = 0.0
        store = await harness.open()
        cacher = Cacher(store, clock=lambda: clock, tick_seconds=0)
        await cacher.open()
        pods = cacher.resource(PODS, LabelledCodec())
        watcher = await pods.watch(f"{PODS}a/", bookmarks=True)
        await pods.create(f"{PODS}a/1", b"{}")
        await pods.create(f"{PODS}b/1", b"{}")
        clock = 61.0
        cacher.tick()
        event, bookmark = await take_watched(watcher, 2)
        assert (event.type, event.revision) == ("ADDED", 2)
        assert (bookmark.type, bookmark.revision) == ("BOOKMARK", 3)
        await pods.create(f"{PODS}a/2", b"{}")
        resumed = await take_watched(await pods.watch(f"{PODS}a/", bookmark.revision), 1)
        assert (resumed[0].type, resumed[0].entry.key) == ("ADDED", f"{PODS}a/2")
        await cacher.close()

    async def test_compacted_watches_and_lists_are_refused(self, harness: Harness) -> None:
        store = await harness.open()
        await scramble_labels(store, "a", 20)
        await store.compact(15)
        cacher = Cacher(store)
        await cacher.open()
        pods = cacher.resource(PODS, LabelledCodec())
        with refused(Compacted):
            await pods.watch(after=14)
        assert len(await take_watched(await pods.watch(after=15), 6)) == 6
        with refused(Compacted):
            await pods.entries_at(14)
        assert (await pods.entries_at(15)).revision == 15
        await cacher.close()

    async def test_a_streamed_list_ends_with_a_bookmark(self, harness: Harness) -> None:
        store = await harness.open()
        cacher = Cacher(store)
        await cacher.open()
        pods = cacher.resource(PODS, LabelledCodec())
        for number in range(3):
            await pods.create(f"{PODS}a/{number}", b"{}")
        watcher = await pods.watch(initial=True, bookmarks=True)
        await pods.create(f"{PODS}a/3", b"{}")
        events = await take_watched(watcher, 5)
        assert [event.type for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK", "ADDED"]
        assert [event.revision for event in events] == [2, 3, 4, 4, 5]
        assert [event.initial_end for event in events] == [False, False, False, True, False]
        await cacher.close()


def told(event: WatchEvent) -> tuple[str, str, int, bytes]:
    """What a client learns from an event."""
    return event.type, event.entry.key, event.revision, event.entry.data


async def scramble_labels(store: Backend, name: str, rounds: int) -> None:
    """Create, update and delete objects that `LabelledCodec` understands."""
    for number in range(rounds):
        key = f"{PODS}{name}/{number % 3}"
        value = orjson.dumps({"round": str(number)})
        current = await store.get(key)
        if current is None:
            await store.create(key, value)
        elif number % 5 == 4:
            await store.delete(key, current.revision)
        else:
            await store.update(key, value, current.revision)
