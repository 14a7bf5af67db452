import asyncio
import weakref

import pytest

from pilothouse.storage.backends.contract import Compacted
from pilothouse.storage.cacher.audience import Audience
from pilothouse.storage.cacher.changes import Change
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.watcher import HELD_BYTES, PAGE, Watcher
from pilothouse.storage.cacher.window import Window, WindowLimits

PODS = "/registry/pods/"


class Codec:
    def entry(self, key, value, revision):
        return Entry(key, value, revision)

    def restamp(self, entry, revision):
        return Entry(entry.key, entry.data, revision)


def created(revision, key=f"{PODS}a/x"):
    return Change(key, revision, Entry(key, b"", revision), None, Codec(), 0.0)


class Source:
    """A resource without a backend: a window, an audience, and a log that is a list."""

    def __init__(self, start=0):
        self.window = Window(start, WindowLimits(), lambda: 0)
        self.audience = Audience(PODS)
        self.log = []
        self.compacted = 0

    def happen(self, *changes):
        for change in changes:
            self.window.append(change)
            self.audience.dispatch(change)

    def join(self, watcher):
        missed = self.window.since(watcher.position)
        if missed is not None:
            self.audience.add(watcher)
            watcher.go_live()
        return missed

    async def read(self, entries):
        return entries

    def leave(self, watcher):
        self.audience.discard(watcher)

    async def read_history(self, prefix, after):
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        page = [change for change in self.log if change.revision > after][:2]
        return page, page[-1].revision if page else self.window.start


def revisions(events):
    return [event.revision for event in events]


async def test_returns_what_is_there_and_waits_for_more():
    source = Source()
    watcher = Watcher(source, PODS, 0)
    await watcher.catch_up()
    source.happen(created(1), created(2))
    assert revisions(await watcher.next_batch()) == [1, 2]
    waiting = asyncio.create_task(watcher.next_batch())
    await asyncio.sleep(0)
    assert not waiting.done()
    source.happen(created(3))
    assert revisions(await waiting) == [3]


async def test_catches_up_through_history_and_window_before_it_goes_live():
    source = Source(start=5)
    source.log = [created(revision) for revision in range(1, 6)]
    source.happen(created(6), created(7))
    watcher = Watcher(source, PODS, 1)
    batches = [await watcher.next_batch() for _ in range(3)]
    assert [revisions(batch) for batch in batches] == [[2, 3], [4, 5], [6, 7]]
    source.happen(created(8))
    assert revisions(await watcher.next_batch()) == [8]


async def test_a_start_in_the_future_waits_for_it():
    source = Source()
    watcher = Watcher(source, PODS, 3)
    await watcher.catch_up()
    source.happen(created(2), created(3), created(4))
    assert revisions(await watcher.next_batch()) == [4]


async def test_only_the_slow_one_is_ended():
    source = Source()
    slow, quick = Watcher(source, PODS, 0, limit=2), Watcher(source, PODS, 0, limit=100)
    await slow.catch_up()
    await quick.catch_up()
    source.happen(*(created(revision) for revision in range(1, 6)))
    assert revisions(await quick.next_batch()) == [1, 2, 3, 4, 5]
    assert revisions(await slow.next_batch()) == [1, 2]
    assert await slow.next_batch() == []
    assert slow.ended and slow.overflowed and not quick.ended
    assert list(source.audience) == [quick]


async def test_too_old_a_start_ends_with_the_reason():
    source = Source(start=10)
    source.compacted = 5
    watcher = Watcher(source, PODS, 4)
    assert await watcher.next_batch() == []
    assert isinstance(watcher.error, Compacted)


async def test_initial_objects_come_in_pages_and_in_order_then_what_happened_meanwhile():
    source = Source(start=1)
    snapshot = [Entry(f"{PODS}a/{number:04}", b"", 1) for number in range(PAGE + 1)]
    watcher = Watcher(source, PODS, 1, bookmarks=True, initial=snapshot[::-1])
    source.happen(created(2))
    first, second, live = [await watcher.next_batch() for _ in range(3)]
    assert [event.entry for event in first + second[:-1]] == snapshot
    assert (second[-1].type, second[-1].revision, second[-1].initial_end) == ("BOOKMARK", 1, True)
    assert revisions(live) == [2]


async def test_without_objects_the_list_still_ends():
    watcher = Watcher(Source(start=1), PODS, 1, bookmarks=True, initial=[])
    (event,) = await watcher.next_batch()
    assert event.initial_end


async def test_stopping_releases_the_consumer():
    source = Source()
    watcher = Watcher(source, PODS, 0)
    waiting = asyncio.create_task(watcher.next_batch())
    await asyncio.sleep(0)
    watcher.stop()
    assert await waiting == []
    assert len(source.audience) == 0
    assert (watcher.overflowed, watcher.error) == (False, None)


async def test_a_cancelled_wait_loses_nothing():
    source = Source()
    watcher = Watcher(source, PODS, 0)
    waiting = asyncio.create_task(watcher.next_batch())
    await asyncio.sleep(0)
    waiting.cancel()
    source.happen(created(1))
    await asyncio.gather(waiting, return_exceptions=True)
    assert revisions(await watcher.next_batch()) == [1]


@pytest.mark.parametrize(
    "prefix, expected",
    [
        (PODS, [1, 2, 3]),
        (f"{PODS}a/", [1, 2]),
        (f"{PODS}a/x", [1]),
        (f"{PODS}a", []),
        (f"{PODS}c/", []),
    ],
)
async def test_the_audience_is_found_by_key(prefix, expected):
    source = Source()
    watcher = Watcher(source, prefix, 0)
    await watcher.catch_up()
    source.happen(created(1, f"{PODS}a/x"), created(2, f"{PODS}a/xy"), created(3, f"{PODS}ab/x"))
    watcher.end()
    assert revisions(await watcher.next_batch()) == expected


async def test_cluster_scoped_objects_are_dispatched_once():
    source = Source()
    watcher = Watcher(source, PODS, 0)
    await watcher.catch_up()
    source.happen(created(1, f"{PODS}x"))
    assert revisions(await watcher.next_batch()) == [1]


async def test_a_failing_selector_ends_its_watch_only(caplog):
    source = Source()
    bad, good = Watcher(source, PODS, 0, lambda entry: 1 / 0), Watcher(source, PODS, 0)
    await bad.catch_up()
    await good.catch_up()
    source.happen(created(1))
    assert revisions(await good.next_batch()) == [1]
    assert await bad.next_batch() == []
    assert "selector failed" in str(bad.error)


async def test_bookmarks_only_when_live():
    source = Source(start=5)
    watcher = Watcher(source, PODS, 1, bookmarks=True)
    watcher.offer_bookmark(5)
    source.compacted = 5
    assert await watcher.next_batch() == []


async def test_large_changes_are_not_kept_for_one_who_takes_none():
    source = Source()
    slow, quick = Watcher(source, PODS, 0), Watcher(source, PODS, 0)
    await slow.catch_up()
    await quick.catch_up()
    size = HELD_BYTES // 4
    for revision in range(1, 8):
        entry = Entry(f"{PODS}a/x", b"x" * size, revision)
        source.happen(Change(entry.key, revision, entry, None, Codec(), 0.0))
        assert revisions(await quick.next_batch()) == [revision]
    assert len(await slow.next_batch()) == 6
    assert slow.overflowed and not quick.ended


async def test_watches_that_begin_with_a_long_object_share_what_is_made_of_it():
    entry, short = Entry(f"{PODS}a/x", b"x" * 20_000, 1), Entry(f"{PODS}a/y", b"x", 1)
    batches = [await Watcher(Source(), PODS, 1, initial=[entry, short]).next_batch() for _ in range(2)]
    (short_event, event), (other_short_event, other) = batches
    assert other is event
    assert other_short_event is not short_event
    gone = weakref.ref(event)
    del batches, event, other
    assert gone() is None
