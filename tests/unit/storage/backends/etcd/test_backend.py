"""What etcd's backend does beyond the suite that all backends share."""

import asyncio

import pytest

from pilothouse.storage.backends.contract import Conflict, KeyExists, Unavailable
from pilothouse.storage.backends.etcd import EtcdBackend, EtcdSettings, Transport
from pilothouse.storage.backends.etcd.compactor import COMPACT_KEY, Compactor
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.errors import CallFailed
from pilothouse.storage.backends.etcd.messages import _data, _message
from pilothouse.testing.etcd_process import EtcdCluster, find_etcd

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")

PATIENCE_SECONDS = 60.0


@pytest.fixture
def cluster():
    with EtcdCluster() as cluster:
        yield cluster


@pytest.fixture
async def store(cluster):
    backend = EtcdBackend(Transport(cluster.urls))
    await backend.open()
    yield backend
    await backend.close()


class Recorder:
    def __init__(self):
        self.batches = []

    def receive(self, events, revision):
        self.batches.append((revision, [(event.key, event.value, event.origin) for event in events]))

    def fail(self, error):
        self.error = error


async def test_an_own_write_is_handed_out_before_it_returns(store):
    recorder = Recorder()
    store.follow(recorder)
    origin = object()
    revision = await store.create("/a", b"x", origin=origin)
    assert recorder.batches == [(revision, [("/a", b"x", origin)])]
    await store.current_revision()
    assert len(recorder.batches) == 1


async def test_keys_of_one_transaction_come_together(store):
    recorder = Recorder()
    store.follow(recorder)
    puts = b"".join(_message(2, _message(2, _data(1, key) + _data(2, b"x"))) for key in (b"/a", b"/b", b"/c"))
    await store._connection.write("KV/Txn", puts)
    revision = await store.current_revision()
    assert recorder.batches == [(revision, [("/a", b"x", None), ("/b", b"x", None), ("/c", b"x", None)])]
    assert [event.key for event in (await store.history("", 1)).events] == ["/a", "/b", "/c"]


class LosingConnection:
    """Carries out writes, or does not, and loses the answer."""

    def __init__(self, inner, carried_out):
        self._inner, self._carried_out = inner, carried_out

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def write(self, method, body, seconds=1.0):
        if self._carried_out:
            await self._inner.write(method, body, seconds)
        raise CallFailed("UNAVAILABLE", "etcdserver: request timed out")


async def test_a_write_without_an_answer_is_looked_up(store):
    await store.create("/a", b"1")
    connection = store._connection
    store._connection = LosingConnection(connection, carried_out=True)
    assert await store.update("/a", b"2", 2) == 3
    assert await store.create("/b", b"1") == 4
    with pytest.raises(Unavailable, match="etcdserver: request timed out"):
        await store.delete("/a", 3)
    store._connection = connection
    assert await store.get("/a") is None


async def test_a_write_that_was_not_carried_out_fails(store):
    await store.create("/a", b"1")
    store._connection = LosingConnection(store._connection, carried_out=False)
    for write in (store.update("/a", b"2", 2), store.create("/b", b"1"), store.delete("/a", 2)):
        with pytest.raises(Unavailable, match="etcdserver: request timed out"):
            await write
    with pytest.raises(Conflict):
        await store.update("/a", b"3", 1)
    with pytest.raises(KeyExists):
        await store.create("/a", b"3")


async def test_readers_share_a_round_trip(store):
    asked = []
    read = store._connection.read

    async def counting(*args):
        asked.append(args)
        return await read(*args)

    store._connection.read = counting
    assert set(await asyncio.gather(*(store.current_revision() for _ in range(50)))) == {1}
    assert len(asked) <= 2


async def test_a_negative_interval_compacts_without_end(cluster):
    backend = EtcdBackend(Transport(cluster.urls), EtcdSettings(compaction_seconds=-300.0))
    await backend.open()
    try:
        revision = await backend.create("/a", b"x")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await backend.compacted_revision() < revision:
                await asyncio.sleep(0.1)
    finally:
        await backend.close()


async def test_compactors_take_turns(cluster, store):
    first, second = (Compactor(Connection(Transport(cluster.urls)), 300) for _ in range(2))
    assert (await first.take_turn(), await second.take_turn()) == (0, 0)
    for number in range(5):
        await store.create(f"/a/{number}", b"x")
    compacted = await second.take_turn()
    assert compacted == 2
    assert await store.compacted_revision() == compacted
    assert await first.take_turn() == 0
    kept = await store.get(COMPACT_KEY.decode())
    assert (kept.value, kept.created) == (b"2", 2)
    for compactor in (first, second):
        await compactor._connection.close()


async def test_health_is_about_the_whole_cluster(cluster):
    settings = EtcdSettings(health_seconds=0.2, readiness_seconds=0.2)
    store = EtcdBackend(Transport(cluster.urls), settings)
    await store.open()
    assert store.health.error == ""
    (member,) = cluster.members
    member.pause()
    async with asyncio.timeout(120):
        while not store.health.error:
            await asyncio.sleep(0.01)
    assert store.health.error == "error getting data from etcd: context deadline exceeded"
    member.resume()
    async with asyncio.timeout(120):
        while store.readiness.error or store.health.error:
            await asyncio.sleep(0.01)
    await store.close()


async def test_events_share_a_lease(store):
    await store.create("/a", b"x", 3600)
    await store.create("/b", b"x", 3600)
    from pilothouse.storage.backends.etcd.messages import read_leases

    assert len(read_leases(await store._connection.read("Lease/LeaseLeases", b""))) == 1
    assert (await store.sizes(5.0)).keys() == set(store._connection.servers)
