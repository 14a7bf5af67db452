"""Members of an etcd cluster are killed, paused and started again under load; histories are held against a model.

The model: every acknowledged write is in the log once, at its revision and with its value; every follower, in every
process, sees one and the same log, in order, without gaps or repeats; what is stored in the end is what the log says.
"""

import asyncio
import contextlib
import functools
import itertools

import pytest

from pilothouse.storage.backends.contract import Compacted, Conflict, KeyExists, StorageError
from pilothouse.storage.backends.etcd import EtcdBackend, EtcdSettings, Transport, backend
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.errors import CallFailed
from pilothouse.storage.backends.etcd.messages import prefix_range, put_if_request
from pilothouse.storage.backends.etcd.sight import Sight
from pilothouse.testing.etcd_process import SURVIVES_KILLS, EtcdCluster, find_etcd, reports_progress

pytestmark = pytest.mark.skipif(find_etcd() is None, reason="there is no etcd")

PREFIX = "/registry/things/"
PATIENCE_SECONDS = 90.0
SETTINGS = EtcdSettings(health_seconds=0.5, readiness_seconds=0.5, write_seconds=10.0, read_seconds=20.0)


class Recorder:
    """A follower that remembers everything."""

    def __init__(self):
        self.events, self.revision = [], 0

    def receive(self, events, revision):
        assert all(self.revision < event.revision <= revision for event in events)
        assert [event.revision for event in events] == sorted(event.revision for event in events)
        self.events.extend(events)
        self.revision = revision

    def fail(self, error):
        # Closing tells so; a feed that broke earlier lacks events, which is found out.
        self.revision = float("inf")


class Load:
    """Writers that write until told to stop, and what they were told about each write."""

    def __init__(self, handles):
        self.handles, self.stopping = handles, False
        self.acknowledged, self.failures = {}, 0
        self.tasks = [asyncio.ensure_future(self.write(n, handle)) for n, handle in enumerate(handles * 2)]

    async def write(self, number, handle):
        for turn in itertools.count():
            if self.stopping:
                return
            key = f"{PREFIX}{number}/{turn % 3}"
            value = b"%d of %d" % (turn, number)
            try:
                current = await handle.get(key)
                if current is None:
                    self.acknowledged[await handle.create(key, value)] = (key, value)
                elif turn % 5 == 4:
                    self.acknowledged[await handle.delete(key, current.revision)] = (key, None)
                else:
                    self.acknowledged[await handle.update(key, value, current.revision)] = (key, value)
            except (Conflict, KeyExists):
                # Only an own write that was given up and came through after all can be in the way.
                self.failures += 1
            except StorageError:
                self.failures += 1
                await asyncio.sleep(0.01)

    async def progress(self, count=60):
        """Wait until this many more writes have been acknowledged."""
        wanted = len(self.acknowledged) + count
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(self.acknowledged) < wanted:
                await asyncio.sleep(0.01)

    async def stop(self):
        self.stopping = True
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*self.tasks)


def check(load, recorders, final):
    log = max((recorder.events for recorder in recorders), key=len)
    by_revision = {event.revision: event for event in log}
    assert len(by_revision) == len(log)
    for revision, (key, value) in load.acknowledged.items():
        assert (by_revision[revision].key, by_revision[revision].value) == (key, value)
    for recorder in recorders:
        assert [(e.revision, e.key, e.value) for e in recorder.events] == [(e.revision, e.key, e.value) for e in log]
    state = {}
    for event in log:
        state[event.key] = event.value
    assert {key: value for key, value in state.items() if value is not None and key.startswith(PREFIX)} == final


async def run_with_faults(cluster, fault):
    handles = [EtcdBackend(Transport(urls), SETTINGS) for urls in (cluster.urls, cluster.urls[::-1])]
    try:
        for handle in handles:
            await handle.open()
        recorders = [Recorder() for _ in handles]
        for handle, recorder in zip(handles, recorders, strict=True):
            handle.follow(recorder)
        load = Load(handles)
        await load.progress()
        await fault(load)
        await load.stop()
        async with asyncio.timeout(PATIENCE_SECONDS):
            revisions = [await handle.current_revision() for handle in handles]
            assert revisions[0] <= revisions[1] and [r.revision for r in recorders][1] >= revisions[1]
            await handles[0].current_revision()
            final = {item.key: item.value for item in (await handles[0].list(PREFIX)).items}
        check(load, recorders, final)
        return load
    finally:
        for handle in handles:
            await handle.close()


ROUNDS = [1, pytest.param(9, marks=pytest.mark.soak)]


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_a_member_is_killed_and_comes_back(rounds):
    with EtcdCluster(3, SURVIVES_KILLS) as cluster:

        async def fault(load):
            for member in itertools.islice(itertools.cycle(cluster.members), rounds):
                member.kill()
                await load.progress()
                member.start()
                await asyncio.to_thread(member.wait_ready)
                await load.progress()

        await run_with_faults(cluster, fault)


@pytest.mark.skipif(
    not reports_progress(),
    reason="etcd before 3.4.31 and 3.5.13 does not say reliably how far a watch is (name a newer one: ETCD)",
)
@pytest.mark.parametrize("rounds", ROUNDS)
async def test_members_fail_while_others_write_what_may_not_be_seen(monkeypatch, rounds):
    """Revisions without events between those of the log: nobody waits for them, nothing is passed over."""

    async def find_sight(connection, prefix, *, asks_for_progress):
        return Sight(*prefix_range(PREFIX), whole=False)

    async def write_others(connection):
        for number in itertools.count():
            with contextlib.suppress(CallFailed):
                await connection.write("KV/Txn", put_if_request(b"/others/%d" % number, b"x", 0))
            await asyncio.sleep(0.001)

    monkeypatch.setattr(backend, "find_sight", find_sight)
    with EtcdCluster(3, SURVIVES_KILLS) as cluster:

        async def fault(load):
            for member in itertools.islice(itertools.cycle(cluster.members), rounds):
                member.kill()
                await load.progress()
                member.start()
                await asyncio.to_thread(member.wait_ready)
                await load.progress()

        others = Connection(Transport(cluster.urls))
        writing = asyncio.ensure_future(write_others(others))
        await run_with_faults(cluster, fault)
        writing.cancel()
        await asyncio.wait([writing])
        await others.close()


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_a_paused_member_holds_nobody_up(rounds):
    with EtcdCluster(3) as cluster:

        async def fault(load):
            for member in itertools.islice(itertools.cycle(cluster.members), rounds):
                member.pause()
                await load.progress(20)
                member.resume()
                await asyncio.to_thread(member.wait_ready)

        await run_with_faults(cluster, fault)


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_a_member_that_its_peers_do_not_hear(rounds):
    """Clients reach it all the same; it may neither acknowledge nor show what the others do not know."""
    with EtcdCluster(3, linked=True) as cluster:

        async def fault(load):
            for _ in range(rounds):
                leader = await eventually(cluster.leader)
                for member in (leader, next(each for each in cluster.members if each is not leader)):
                    await asyncio.to_thread(cluster.cut_off, member)
                    await eventually(functools.partial(is_alone, member))
                    await load.progress(30)
                    cluster.join_again()
                    await asyncio.to_thread(member.wait_ready)
                    await load.progress(10)

        await run_with_faults(cluster, fault)


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_leaders_change(rounds):
    with EtcdCluster(3) as cluster:

        async def fault(load):
            for _ in range(3 * rounds):
                before = await eventually(cluster.leader)
                await eventually(cluster.move_leader)
                await load.progress(20)
                assert await eventually(cluster.leader) is not before

        await run_with_faults(cluster, fault)


def is_alone(member):
    """Raises OSError while the member knows a leader."""
    if member.ids()[1]:
        raise OSError("it still follows somebody")


async def eventually(ask):
    """What etcd answers once it can."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return await asyncio.to_thread(ask)
            except OSError:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.soak)])
async def test_all_members_go_and_come_back(seconds):
    with EtcdCluster(3, SURVIVES_KILLS) as cluster:

        async def fault(load):
            for member in cluster.members:
                member.kill()
            await asyncio.sleep(seconds)
            for member in cluster.members:
                member.start()
            for member in cluster.members:
                await asyncio.to_thread(member.wait_ready)
            await load.progress()

        await run_with_faults(cluster, fault)


async def test_history_that_is_compacted_while_the_watch_is_away_is_told():
    with EtcdCluster(options=SURVIVES_KILLS) as cluster:
        (member,) = cluster.members
        handle, other = (EtcdBackend(Transport(cluster.urls), SETTINGS) for _ in range(2))
        await handle.open()
        told = asyncio.get_running_loop().create_future()

        class Follower:
            def receive(self, events, revision):
                pass

            def fail(self, error):
                told.set_result(error)

        handle.follow(Follower())
        await handle.create(f"{PREFIX}a", b"1")
        # Hold the watch back by hand: what it would see next is compacted before it is taken up again.
        log = handle._log
        member.pause()
        member.kill()
        blocked = log._follow_stream
        gate = asyncio.Event()

        async def later():
            await gate.wait()
            await blocked()

        log._follow_stream = later
        member.start()
        await asyncio.to_thread(member.wait_ready)
        await other.open()
        revision = await other.create(f"{PREFIX}b", b"1")
        revision = await other.update(f"{PREFIX}b", b"2", revision)
        await other.compact(revision)
        gate.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            error = await told
        assert isinstance(error, Compacted)
        assert await handle.current_revision() >= revision
        await handle.close()
        await other.close()
