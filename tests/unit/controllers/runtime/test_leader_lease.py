import asyncio
from collections.abc import AsyncIterator

import pytest

from pilothouse.controllers.runtime.client import LoopbackClients, ResourceClient
from pilothouse.controllers.runtime.leader_lease import LeaderLease
from pilothouse.machinery.supervision import Supervisor
from pilothouse.testing.fake_clock import FakeClock


@pytest.fixture
async def leases(clients: LoopbackClients) -> AsyncIterator[ResourceClient]:
    yield clients.api_server().of("coordination.k8s.io", "v1", "leases")


class Works:
    """What a leader does."""

    def __init__(self) -> None:
        self.running = False

    async def __call__(self, supervisor: Supervisor) -> None:
        supervisor.run("work", self._work)

    async def _work(self) -> None:
        self.running = True
        try:
            await asyncio.Event().wait()
        finally:
            self.running = False


async def until(condition: object) -> None:
    async with asyncio.timeout(120):
        while not condition():  # type: ignore[operator]
            await asyncio.sleep(0.001)


async def test_one_leads_and_another_follows_when_it_stops(leases: ResourceClient, supervisor: Supervisor) -> None:
    clock, works = FakeClock(), [Works(), Works()]
    first = LeaderLease(leases, "kube-system", "it", "a", clock=clock)
    second = LeaderLease(leases, "kube-system", "it", "b", clock=clock)
    first.start(supervisor, works[0])
    await first.wait_leading()
    await until(lambda: works[0].running)
    second.start(supervisor, works[1])
    await until(lambda: second.leader == "a")
    spec = (await leases.get("kube-system", "it"))["spec"]
    assert spec["holderIdentity"] == "a"
    assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (15, 0)
    assert spec["acquireTime"] == spec["renewTime"] == "2026-09-21T14:13:20.000000Z"
    await first.stop()
    assert not works[0].running and not first.is_leader
    spec = (await leases.get("kube-system", "it"))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
    await clock.until_waiting()
    clock.advance(2)
    await second.wait_leading()
    await until(lambda: works[1].running)
    spec = (await leases.get("kube-system", "it"))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)


async def test_a_lease_is_renewed_and_keeps_when_it_was_acquired(
    leases: ResourceClient, supervisor: Supervisor
) -> None:
    clock = FakeClock()
    lease = LeaderLease(leases, "kube-system", "it", "a", clock=clock)
    assert await lease.try_acquire_or_renew()
    clock.advance(10)
    assert await lease.try_acquire_or_renew()
    spec = (await leases.get("kube-system", "it"))["spec"]
    assert (spec["acquireTime"], spec["renewTime"]) == ("2026-09-21T14:13:20.000000Z", "2026-09-21T14:13:30.000000Z")
    assert spec["leaseTransitions"] == 0


async def test_a_lease_that_nobody_renews_can_be_taken(leases: ResourceClient) -> None:
    clock = FakeClock()
    dead = LeaderLease(leases, "kube-system", "it", "a", clock=clock)
    other = LeaderLease(leases, "kube-system", "it", "b", clock=clock)
    assert await dead.try_acquire_or_renew()
    clock.advance(100)
    assert not await other.try_acquire_or_renew()  # it has only now seen the lease: who knows how old it is
    clock.advance(14)
    assert not await other.try_acquire_or_renew()
    clock.advance(1)
    assert await other.try_acquire_or_renew()
    assert not await dead.try_acquire_or_renew()
    assert dead.leader == "b"


async def test_who_loses_the_lease_stops(leases: ResourceClient, supervisor: Supervisor) -> None:
    clock, works = FakeClock(), Works()
    lease = LeaderLease(leases, "kube-system", "it", "a", clock=clock)
    lease.start(supervisor, works)
    await lease.wait_leading()
    await until(lambda: works.running)
    stolen = await leases.get("kube-system", "it")
    stolen["spec"]["holderIdentity"] = "thief"
    await leases.update(stolen)
    await clock.until_waiting()
    clock.advance(2)
    await until(lambda: not lease.is_leader)
    assert not works.running
    assert (await leases.get("kube-system", "it"))["spec"]["holderIdentity"] == "thief"


async def test_who_is_killed_while_waiting_to_begin_leads_all_the_same(
    leases: ResourceClient, supervisor: Supervisor
) -> None:
    ready, works = asyncio.Event(), Works()
    lease = LeaderLease(leases, "kube-system", "it", "a", wait_for=ready, clock=FakeClock())
    lease.start(supervisor, works)
    await asyncio.sleep(0)
    (waiting,) = [task for task in asyncio.all_tasks() if task.get_name() == "leader lease it"]
    waiting.cancel()
    await until(waiting.done)
    ready.set()
    await until(lambda: works.running)
    await lease.stop()
