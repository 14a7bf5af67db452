import asyncio
import socket

import pytest

from pilothouse.storage.backends.contract import KeyValue, Unavailable
from pilothouse.storage.backends.shared import LogServer, SharedBackend
from pilothouse.storage.backends.sqlite import SQLiteBackend, beacon_of
from pilothouse.testing.cacher_conformance import CacherConformance
from pilothouse.testing.storage_conformance import BackendConformance, WatchConformance, refused


class SharedHarness:
    """One SQLite store that its owner serves to handles over sockets; it is opened anew when all handles are closed."""

    def __init__(self, path, shown):
        self.path, self.shown = path, shown
        self.time = 1_700_000_000.0
        self.owner = None
        self.handles, self.servers = [], []

    async def open(self):
        if not any(handle.is_open for handle in self.handles):
            await self.end_owner()
            self.owner = SQLiteBackend(self.path, clock=lambda: self.time, upkeep_seconds=0, poll_seconds=0.005)
            await self.owner.open()
        ours, theirs = socket.socketpair()
        server = LogServer(self.owner)
        await server.start(ours)
        self.servers.append(server)

        async def connect():
            return theirs

        backend = SharedBackend(connect, (lambda: beacon_of(self.path)) if self.shown else None)
        await backend.open()
        self.handles.append(backend)
        return backend

    async def pass_time(self, seconds):
        self.time += seconds
        await self.owner.maintain()

    async def end_owner(self):
        for server in self.servers:
            server.close()
        if self.owner is not None:
            await self.owner.close()

    async def close(self):
        for handle in self.handles:
            await handle.close()
        await self.end_owner()


@pytest.fixture
async def harness(tmp_path, request):
    harness = SharedHarness(str(tmp_path / "store.db"), getattr(request.cls, "shown", True))
    yield harness
    await harness.close()


class TestShared(BackendConformance):
    async def test_writes_in_one_breath_keep_their_order(self, harness):
        store = await harness.open()
        create = asyncio.ensure_future(store.create("/a/1", b"1"))
        update = asyncio.ensure_future(store.update("/a/1", b"2", 2))
        again = asyncio.ensure_future(store.update("/a/1", b"3", 3))
        assert [await create, await update, await again] == [2, 3, 4]
        assert await store.get("/a/1") == KeyValue("/a/1", b"3", 4, 2)

    async def test_what_others_write_into_the_file_is_seen(self, harness):
        store = await harness.open()
        stranger = SQLiteBackend(harness.path, upkeep_seconds=0)
        await stranger.open()
        try:
            revision = await stranger.create("/a/1", b"x")
            unseen = store.unseen_revision()
            assert unseen is None or unseen >= revision
            assert await store.current_revision() == revision
        finally:
            await stranger.close()

    async def test_origins_come_back_before_the_answer(self, harness):
        store, other = await harness.open(), await harness.open()
        seen, origin = [], object()

        class Recorder:
            def receive(self, events, revision):
                seen.extend((event.key, event.value, event.origin) for event in events)

            def fail(self, error):
                raise AssertionError(error)

        feed = store.follow(Recorder())
        await store.create("/a/1", b"x", None, origin)
        assert seen == [("/a/1", b"x", origin)]
        await other.create("/a/2", b"y", None, origin)
        await store.current_revision()
        assert seen[1:] == [("/a/2", b"y", None)]
        feed.close()

    async def test_an_owner_that_goes_fails_all_who_wait(self, harness):
        store = await harness.open()
        gone = asyncio.Event()
        store._on_lost = gone.set
        waiting = asyncio.ensure_future(anext(store.watch("/a/", 1)))
        await asyncio.sleep(0)
        harness.servers[0].close()
        with refused(Unavailable):
            await waiting
        await gone.wait()
        with refused(Unavailable):
            await store.get("/a/1")


class TestSharedByAsking(WatchConformance):
    """Where nothing shows how far the log is, the owner is asked."""

    shown = False


class TestCacherOnShared(CacherConformance):
    pass
