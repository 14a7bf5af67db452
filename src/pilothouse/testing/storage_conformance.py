"""What every storage backend must do, as tests to inherit.

Subclass `BackendConformance` in a test module and provide a pytest fixture named `harness` that opens handles on
one store and can let time pass. Nothing here knows a particular backend, and nothing depends on timing: what is
promised must hold however the tasks interleave. `cacher_conformance` runs the watch cache over the same harness.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from pilothouse.storage.backends.contract import (
    Backend,
    Compacted,
    Conflict,
    Event,
    FutureRevision,
    KeyExists,
    KeyValue,
    StorageError,
    Unavailable,
)

PODS = "/registry/pods/"
PATIENCE_SECONDS = 120.0

E = TypeVar("E", bound=StorageError)
T = TypeVar("T")


class Harness(Protocol):
    """One store, empty when a test begins."""

    async def open(self) -> Backend:
        """Open a handle of its own on the store, as another process would; the fixture closes what is left open."""

    async def pass_time(self, seconds: int) -> None:
        """Let time pass for all open handles, and let them do what time demands."""


class Caught(Generic[E]):
    """What `refused` has caught."""

    error: E


@contextmanager
def refused(kind: type[E]) -> Iterator[Caught[E]]:
    """The body must raise an error of this kind."""
    caught: Caught[E] = Caught()
    try:
        yield caught
    except kind as error:
        caught.error = error
    else:
        raise AssertionError(f"{kind.__name__} was expected")


async def soon(awaitable: Awaitable[T]) -> T:
    """A bound for what must happen, so that a broken backend fails instead of hanging."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await awaitable


async def take(watch: AsyncIterator[Sequence[Event]], count: int) -> list[Event]:
    """The next events of a watch, exactly this many."""
    events: list[Event] = []
    while len(events) < count:
        events.extend(await soon(anext(watch)))
    assert len(events) == count
    return events


def state_after(events: Sequence[Event]) -> dict[str, bytes]:
    """What a reader of the log believes the store to contain."""
    state: dict[str, bytes] = {}
    for event in events:
        if event.value is None:
            del state[event.key]
        else:
            assert event.created == (event.key not in state)
            state[event.key] = event.value
    return state


async def increment(store: Backend, key: str, times: int) -> None:
    """Count up with optimistic concurrency, as every client of the API does."""
    for _ in range(times):
        while True:
            current = await store.get(key)
            assert current is not None
            try:
                await store.update(key, b"%d" % (int(current.value) + 1), current.revision)
            except Conflict:
                continue
            break


async def scramble(store: Backend, name: str, rounds: int) -> list[int]:
    """Create, update and delete keys of one's own; returns the revisions that were acknowledged."""
    revisions = []
    for number in range(rounds):
        key = f"{PODS}{name}/{number % 3}"
        current = await store.get(key)
        if current is None:
            revisions.append(await store.create(key, b"%d" % number))
        elif number % 5 == 4:
            revisions.append(await store.delete(key, current.revision))
        else:
            revisions.append(await store.update(key, b"%d" % number, current.revision))
    return revisions


class WriteConformance:
    """Creating, updating and deleting: preconditions, revisions, races."""

    async def test_revisions_start_at_one_and_count_successful_writes(self, harness: Harness) -> None:
        store = await harness.open()
        assert await store.current_revision() == 1
        assert await store.create("/a/1", b"x") == 2
        with refused(KeyExists) as exists:
            await store.create("/a/1", b"y")
        assert exists.error.current == 2
        with refused(Conflict):
            await store.update("/a/2", b"y", 1)
        assert await store.update("/a/1", b"y", 2) == 3
        assert await store.delete("/a/1", 3) == 4
        assert await store.current_revision() == 4

    async def test_values_and_revisions_are_read_back(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/1", b"x")
        await store.create("/a/2", b"")
        await store.update("/a/1", b"\0\xff", 2)
        assert await store.get("/a/1") == KeyValue("/a/1", b"\0\xff", 4, 2)
        assert await store.get("/a/2") == KeyValue("/a/2", b"", 3, 3)
        assert await store.get("/a") is None

    async def test_a_conflict_tells_the_current_state(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/1", b"x")
        await store.update("/a/1", b"y", 2)
        with refused(Conflict) as stale:
            await store.update("/a/1", b"z", 2)
        assert stale.error.current == KeyValue("/a/1", b"y", 3, 2)
        with refused(Conflict) as stale:
            await store.delete("/a/1", 2)
        assert stale.error.current == KeyValue("/a/1", b"y", 3, 2)
        with refused(Conflict) as absent:
            await store.delete("/a/2", 2)
        assert absent.error.current is None

    async def test_a_deleted_key_can_be_created_anew(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/1", b"x")
        await store.delete("/a/1", 2)
        assert await store.get("/a/1") is None
        with refused(Conflict):
            await store.update("/a/1", b"y", 3)
        await store.create("/a/1", b"z")
        assert await store.get("/a/1") == KeyValue("/a/1", b"z", 4, 4)

    async def test_a_refused_write_leaves_nothing_behind(self, harness: Harness) -> None:
        """An error that is in a cycle with what it went through would keep it: the objects of a whole request."""

        class Origin:
            """Stands for all that a writer holds."""

        async def write(origin: Origin, write: Callable[[Origin], Awaitable[int]]) -> None:
            with suppress(KeyExists, Conflict):
                await write(origin)

        store = await harness.open()
        await store.create("/a/1", b"x")
        gc.disable()
        try:
            for number, attempt in enumerate(
                (
                    lambda origin: store.create("/a/1", b"y", None, origin),
                    lambda origin: store.update("/a/1", b"y", 7, None, origin),
                    lambda origin: store.delete("/a/1", 7, origin),
                )
            ):
                origin = Origin()
                held = weakref.ref(origin)
                await write(origin, attempt)
                del origin
                await store.create(f"/b/{number}", b"x")  # the last of all writes may be remembered
                await asyncio.sleep(0)
                assert held() is None
        finally:
            gc.enable()

    async def test_one_of_many_creates_wins(self, harness: Harness) -> None:
        store = await harness.open()
        results = await asyncio.gather(*(store.create("/a/1", b"%d" % n) for n in range(20)), return_exceptions=True)
        won = [number for number, result in enumerate(results) if result == 2]
        assert len(won) == 1
        assert sum(isinstance(result, KeyExists) for result in results) == 19
        assert await store.get("/a/1") == KeyValue("/a/1", b"%d" % won[0], 2, 2)

    async def test_one_of_many_updates_and_deletes_wins(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/1", b"x")
        writes = [store.update("/a/1", b"%d" % n, 2) if n % 2 else store.delete("/a/1", 2) for n in range(20)]
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert sorted(isinstance(result, Conflict) for result in results) == [False] + [True] * 19
        assert await store.current_revision() == 3

    async def test_no_update_is_lost(self, harness: Harness) -> None:
        store, other = await harness.open(), await harness.open()
        await store.create("/a/count", b"0")
        await soon(asyncio.gather(*(increment(handle, "/a/count", 10) for handle in (store, other) for _ in range(3))))
        final = await store.get("/a/count")
        assert final == KeyValue("/a/count", b"60", 62, 2)

    async def test_cancelling_a_writer_harms_nobody(self, harness: Harness) -> None:
        store = await harness.open()
        first = asyncio.ensure_future(store.create("/a/1", b"x"))
        second = asyncio.ensure_future(store.create("/a/2", b"x"))
        await asyncio.sleep(0)
        first.cancel()
        assert await second in (2, 3)


class ReadConformance:
    """Listings and reads, now and in the past."""

    async def test_lists_are_ordered_and_bounded_by_the_prefix(self, harness: Harness) -> None:
        store = await harness.open()
        inside = ["/a/", "/a/ü", "/a/b", "/a/a/z", "/a/a", "/a/\U0001f600", "/a/-"]
        for key in [*inside, "/a", "/a0", "/ab/c", "/A/x"]:
            await store.create(key, b"x")
        page = await store.list("/a/")
        assert [item.key for item in page.items] == sorted(inside)
        assert (page.more, page.remaining, page.revision) == (False, 0, 12)
        assert await store.count("/a/") == len(inside)
        assert await store.count("") == len(inside) + 4

    async def test_pages(self, harness: Harness) -> None:
        store = await harness.open()
        for number in range(7):
            await store.create(f"/a/{number}", b"x")
        page = await store.list("/a/", limit=3)
        assert ([item.key for item in page.items], page.more, page.remaining) == (["/a/0", "/a/1", "/a/2"], True, 4)
        page = await store.list("/a/", start="/a/2\0", limit=3, revision=page.revision)
        assert ([item.key for item in page.items], page.more, page.remaining) == (["/a/3", "/a/4", "/a/5"], True, 1)
        page = await store.list("/a/", start="/a/6", limit=1)
        assert ([item.key for item in page.items], page.more, page.remaining) == (["/a/6"], False, 0)
        assert (await store.list("/a/", start="/b")).items == []

    async def test_the_past_can_be_read(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/1", b"x")
        await store.create("/a/2", b"x")
        await store.update("/a/1", b"y", 2)
        await store.delete("/a/2", 3)
        await store.create("/a/2", b"z")
        expected = {
            2: {"/a/1": b"x"},
            3: {"/a/1": b"x", "/a/2": b"x"},
            4: {"/a/1": b"y", "/a/2": b"x"},
            5: {"/a/1": b"y"},
        }
        for revision, state in expected.items():
            page = await store.list("/a/", revision=revision)
            assert {item.key: item.value for item in page.items} == state
            assert page.revision == revision
            for key in ("/a/1", "/a/2"):
                found = await store.get(key, revision)
                assert (found.value if found else None) == state.get(key)

    async def test_the_future_cannot_be_read(self, harness: Harness) -> None:
        store = await harness.open()
        with refused(FutureRevision) as future:
            await store.list("/a/", revision=7)
        assert (future.error.requested, future.error.current) == (7, 1)
        with refused(FutureRevision):
            await store.get("/a/1", 7)

    async def test_pages_at_a_revision_stand_still_while_writes_go_on(self, harness: Harness) -> None:
        store = await harness.open()
        for number in range(30):
            await store.create(f"{PODS}a/{number:02}", b"old")
        writing = asyncio.ensure_future(asyncio.gather(scramble(store, "a0", 60), scramble(store, "b", 60)))
        page = await store.list(PODS, limit=4)
        revision, items = page.revision, list(page.items)
        while page.more:
            current = await store.get(f"{PODS}a/29")
            if current is not None:
                await store.delete(f"{PODS}a/29", current.revision)
            page = await store.list(PODS, start=page.items[-1].key + "\0", limit=4, revision=revision)
            items.extend(page.items)
        await soon(writing)
        assert items == (await store.list(PODS, revision=revision)).items
        assert f"{PODS}a/29" in {item.key for item in items}


class WatchConformance:
    """Watches are ordered, unique, atomic, reliable and resumable."""

    async def test_a_watch_tells_what_happened(self, harness: Harness) -> None:
        store = await harness.open()
        watch = store.watch("/a/", 1)
        await store.create("/a/1", b"x")
        await store.create("/b/1", b"x")
        await store.update("/a/1", b"y", 2)
        await store.delete("/a/1", 4)
        created, updated, deleted = await take(watch, 3)
        assert (created.revision, created.value, created.created, created.previous) == (2, b"x", True, None)
        assert (updated.revision, updated.value, updated.created) == (4, b"y", False)
        assert updated.previous == KeyValue("/a/1", b"x", 2, 2)
        assert (deleted.revision, deleted.value, deleted.created) == (5, None, False)
        assert deleted.previous == KeyValue("/a/1", b"y", 4, 2)

    async def test_watches_are_complete_ordered_and_unique_under_load(self, harness: Harness) -> None:
        store, other = await harness.open(), await harness.open()
        watches = [handle.watch(PODS, 1) for handle in (store, other)]
        collecting = [asyncio.ensure_future(take(watch, 160)) for watch in watches]
        written = await soon(
            asyncio.gather(*(scramble(handle, f"{n}", 40) for n, handle in enumerate((store, other, store, other))))
        )
        acknowledged = sorted(revision for revisions in written for revision in revisions)
        assert acknowledged == list(range(2, 162))
        final = {item.key: item.value for item in (await store.list(PODS)).items}
        for collected in collecting:
            events = await soon(collected)
            assert [event.revision for event in events] == acknowledged
            assert state_after(events) == final

    async def test_a_watch_resumes_after_any_revision(self, harness: Harness) -> None:
        store = await harness.open()
        await scramble(store, "a", 20)
        everything = await take(store.watch(PODS, 1), 20)
        for after in range(1, 21):
            resumed = await take(store.watch(PODS, after), 21 - after)
            assert resumed == [event for event in everything if event.revision > after]

    async def test_history_is_read_in_pages(self, harness: Harness) -> None:
        store = await harness.open()
        await scramble(store, "a", 10)
        await store.create("/other", b"x")
        first = await store.history(PODS, 1, 4)
        rest = await store.history(PODS, first.revision, 100)
        assert [event.revision for event in (*first.events, *rest.events)] == list(range(2, 12))
        assert rest.revision == 12
        with refused(FutureRevision):
            await store.history(PODS, 13)

    async def test_a_watch_can_be_left(self, harness: Harness) -> None:
        store = await harness.open()
        watch = store.watch(PODS, 1)
        pending = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)
        await scramble(store, "a", 3)
        assert len(await take(store.watch(PODS, 1), 3)) == 3

    async def test_followers_receive_every_revision(self, harness: Harness) -> None:
        class Recorder:
            def __init__(self) -> None:
                self.events: list[Event] = []
                self.revision = 0

            def receive(self, events: Sequence[Event], revision: int) -> None:
                assert all(self.revision < event.revision <= revision for event in events)
                self.events.extend(events)
                self.revision = revision

            def fail(self, error: StorageError) -> None:
                raise AssertionError(error)

        store, other = await harness.open(), await harness.open()
        recorder = Recorder()
        feed = store.follow(recorder)
        await soon(asyncio.gather(scramble(store, "a", 30), scramble(other, "b", 30)))
        assert await store.current_revision() == 61
        assert recorder.revision == 61
        assert [event.revision for event in recorder.events] == list(range(feed.revision + 1, 62))
        feed.close()
        await store.create("/x", b"")
        assert recorder.revision == 61

    async def test_a_closed_store_ends_its_watches(self, harness: Harness) -> None:
        store = await harness.open()
        watch = store.watch(PODS, 1)
        pending = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        await store.close()
        with refused(Unavailable):
            await soon(pending)
        with refused(Unavailable):
            await store.create("/a/1", b"x")
        with refused(Unavailable):
            await store.get("/a/1")


class LifetimeConformance:
    """Compaction, expiry, and life beyond one process."""

    async def test_compaction_forgets_the_past_only(self, harness: Harness) -> None:
        store = await harness.open()
        await scramble(store, "a", 30)
        before = (await store.list(PODS)).items
        at_20 = (await store.list(PODS, revision=20)).items
        await store.compact(20)
        assert await store.compacted_revision() == 20
        assert await store.current_revision() == 31
        assert (await store.list(PODS)).items == before
        assert (await store.list(PODS, revision=20)).items == at_20
        with refused(Compacted) as compacted:
            await store.list(PODS, revision=19)
        assert (compacted.error.requested, compacted.error.compacted) == (19, 20)
        with refused(Compacted):
            await store.get(f"{PODS}a/1", 19)

    async def test_watches_below_a_compaction_are_refused(self, harness: Harness) -> None:
        store = await harness.open()
        await scramble(store, "a", 30)
        everything = await take(store.watch(PODS, 20), 11)
        await store.compact(20)
        assert await take(store.watch(PODS, 20), 11) == everything
        with refused(Compacted):
            await soon(anext(store.watch(PODS, 19)))

    async def test_compaction_at_a_deletion_keeps_the_revision(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/1", b"x")
        await store.delete("/a/1", 2)
        await store.compact(3)
        await store.close()
        store = await harness.open()
        assert await store.current_revision() == 3
        assert await store.create("/a/1", b"y") == 4
        await store.compact(4)
        assert (await store.list("")).items == [KeyValue("/a/1", b"y", 4, 4)]

    async def test_the_future_cannot_be_compacted(self, harness: Harness) -> None:
        store = await harness.open()
        with refused(FutureRevision):
            await store.compact(2)

    async def test_keys_expire_as_ordinary_deletions(self, harness: Harness) -> None:
        store = await harness.open()
        watch = store.watch("/a/", 3)
        await store.create("/a/brief", b"x", 2)
        await store.create("/a/long", b"x", 3600)
        await harness.pass_time(4)
        (event,) = await take(watch, 1)
        assert (event.key, event.value) == ("/a/brief", None)
        assert [item.key for item in (await store.list("/a/")).items] == ["/a/long"]

    async def test_an_update_decides_the_lifetime_anew(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/kept", b"x", 2)
        await store.create("/a/brief", b"x")
        await store.update("/a/kept", b"y", 2)
        await store.update("/a/brief", b"y", 3, 2)
        await harness.pass_time(4)
        assert [item.key for item in (await store.list("/a/")).items] == ["/a/kept"]

    async def test_lifetimes_survive_a_restart(self, harness: Harness) -> None:
        store = await harness.open()
        await store.create("/a/brief", b"x", 2)
        await store.close()
        store = await harness.open()
        await harness.pass_time(4)
        assert await store.get("/a/brief") is None

    async def test_everything_survives_a_restart(self, harness: Harness) -> None:
        store = await harness.open()
        await scramble(store, "a", 30)
        await store.compact(10)
        items, events = (await store.list(PODS)).items, await take(store.watch(PODS, 10), 21)
        await store.close()
        store = await harness.open()
        assert (await store.list(PODS)).items == items
        assert await take(store.watch(PODS, 10), 21) == events
        assert (await store.current_revision(), await store.compacted_revision()) == (31, 10)

    async def test_handles_see_each_other(self, harness: Harness) -> None:
        store, other = await harness.open(), await harness.open()
        await store.create("/a/1", b"x")
        assert await other.current_revision() == 2
        assert await other.get("/a/1") == KeyValue("/a/1", b"x", 2, 2)
        with refused(KeyExists):
            await other.create("/a/1", b"y")
        await other.update("/a/1", b"y", 2)
        unseen = store.unseen_revision()
        assert unseen is None or unseen >= 3
        foreseen = store.foresee()
        assert foreseen is None or await foreseen >= 3
        assert (await store.create("/a/2", b"x")) == 4
        with refused(KeyExists):
            await other.create("/a/2", b"y")
        await other.delete("/a/2", 4)
        assert (await store.create("/a/2", b"z")) == 6
        assert (await other.update("/a/2", b"y", 6)) == 7
        with refused(Conflict) as stale:
            await store.update("/a/1", b"z", 2)
        assert stale.error.current == KeyValue("/a/1", b"y", 3, 2)


class BackendConformance(WriteConformance, ReadConformance, WatchConformance, LifetimeConformance):
    """All of it."""
