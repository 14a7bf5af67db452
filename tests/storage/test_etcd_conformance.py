import asyncio
from contextlib import asynccontextmanager

import pytest

from pilothouse.storage.backends.etcd import EtcdBackend, Transport, live_log
from pilothouse.storage.backends.etcd import backend as etcd_backend
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.messages import (
    lease_id_request,
    prefix_range,
    read_granted_seconds,
    read_leases,
)
from pilothouse.storage.backends.etcd.sight import Sight
from pilothouse.storage.cacher import Cacher
from pilothouse.testing.cacher_conformance import PODS, CacherConformance, LabelledCodec, scramble_labels, take_watched
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd, reports_progress
from pilothouse.testing.storage_conformance import BackendConformance

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")


class EtcdHarness:
    def __init__(self, cluster):
        self.cluster = cluster
        self.handles = []

    async def open(self):
        backend = EtcdBackend(Transport(self.cluster.urls))
        await backend.open()
        self.handles.append(backend)
        return backend

    async def pass_time(self, seconds):
        """End the leases that would have ended by then; etcd has no clock that could be turned."""
        connection = Connection(Transport(self.cluster.urls))
        for lease in read_leases(await connection.read("Lease/LeaseLeases", b"")):
            about = await connection.read("Lease/LeaseTimeToLive", lease_id_request(lease))
            if read_granted_seconds(about) <= seconds:
                await connection.write("Lease/LeaseRevoke", lease_id_request(lease))
        await connection.close()

    async def close(self):
        for backend in self.handles:
            await backend.close()


@pytest.fixture
async def harness():
    with EtcdCluster() as cluster:
        harness = EtcdHarness(cluster)
        yield harness
        await harness.close()


class TestEtcd(BackendConformance):
    pass


class TestCacherOnEtcd(CacherConformance):
    pass


async def test_a_watch_that_is_asked_for_late_follows_own_writes(harness, monkeypatch):
    """What was compacted before etcd heard of the watch had been written here: no follower has to begin anew."""
    connected, opened_watch = asyncio.Event(), live_log.opened_watch

    @asynccontextmanager
    async def open_late(*arguments, **options):
        await connected.wait()
        async with opened_watch(*arguments, **options) as watch:
            yield watch

    monkeypatch.setattr(live_log, "opened_watch", open_late)
    store, other = await harness.open(), await harness.open()
    await scramble_labels(store, "a", 20)
    cacher = Cacher(store)
    await cacher.open()
    watcher = await cacher.resource(PODS, LabelledCodec()).watch()
    await store.compact(15)
    connected.set()
    await other.create(f"{PODS}a/other", b"{}")
    assert [event.type for event in await take_watched(watcher, 1)] == ["ADDED"]
    await cacher.close()


# An etcd of which only some keys may be seen


needs_progress = pytest.mark.skipif(
    not reports_progress(),
    reason="etcd before 3.4.31 and 3.5.13 does not say reliably how far a watch is (name a newer one: ETCD)",
)


@pytest.fixture
def confined(harness, monkeypatch):
    """A harness whose stores see keys alone that begin with a slash, which those of the suite do."""

    async def find_sight(connection, prefix, *, asks_for_progress):
        return Sight(*prefix_range("/"), whole=False)

    monkeypatch.setattr(etcd_backend, "find_sight", find_sight)
    return harness


@needs_progress
class TestConfined(BackendConformance):
    @pytest.fixture
    def harness(self, confined):
        return confined


@needs_progress
class TestCacherConfined(CacherConformance):
    @pytest.fixture
    def harness(self, confined):
        return confined
