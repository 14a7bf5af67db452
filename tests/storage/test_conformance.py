import asyncio
import threading

import pytest

from pilothouse.storage.backends.contract import KeyValue
from pilothouse.storage.backends.sqlite import SQLiteBackend
from pilothouse.testing.cacher_conformance import CacherConformance
from pilothouse.testing.storage_conformance import BackendConformance


class SQLiteHarness:
    def __init__(self, path):
        self.path = path
        self.time = 1_700_000_000.0
        self.handles = []

    async def open(self):
        backend = SQLiteBackend(self.path, clock=lambda: self.time, upkeep_seconds=0, poll_seconds=0.005)
        await backend.open()
        self.handles.append(backend)
        return backend

    async def pass_time(self, seconds):
        self.time += seconds
        for backend in self.handles:
            if backend.is_open:
                await backend.maintain()

    async def close(self):
        for backend in self.handles:
            await backend.close()


@pytest.fixture
async def harness(tmp_path, blocked_loop_is_an_error):
    harness = SQLiteHarness(str(tmp_path / "store.db"))
    yield harness
    await harness.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("pilothouse-sqlite")]


@pytest.fixture
def blocked_loop_is_an_error():
    from blockbuster import blockbuster_ctx

    with blockbuster_ctx("pilothouse.storage"):
        yield


class TestSQLite(BackendConformance):
    async def test_writes_in_one_breath_keep_their_order(self, harness):
        store = await harness.open()
        create = asyncio.ensure_future(store.create("/a/1", b"1"))
        update = asyncio.ensure_future(store.update("/a/1", b"2", 2))
        again = asyncio.ensure_future(store.update("/a/1", b"3", 3))
        assert [await create, await update, await again] == [2, 3, 4]
        assert await store.get("/a/1") == KeyValue("/a/1", b"3", 4, 2)


class TestCacherOnSQLite(CacherConformance):
    pass
