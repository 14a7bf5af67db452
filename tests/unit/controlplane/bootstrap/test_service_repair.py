from typing import Any

import pytest

from pilothouse.controllers.own_objects import create, existing, remove
from pilothouse.controlplane.allocation.node_ports import NodePorts, StoredLedger
from pilothouse.controlplane.allocation.ranges import PortRange
from pilothouse.controlplane.bootstrap.kubernetes_service import KubernetesService
from pilothouse.controlplane.bootstrap.service_cidr import DefaultServiceCIDR
from pilothouse.controlplane.bootstrap.service_repair import ServiceRepair
from pilothouse.machinery.metrics import render
from pilothouse.machinery.times import Instant, now_instant
from pilothouse.registry.storage import StorageFactory
from pilothouse.storage.cacher import Cacher


class Bench:
    """A server's stores with the kubernetes service, and the repair over them."""

    def __init__(self, storage: StorageFactory, cacher: Cacher) -> None:
        self.services = storage.store("", "v1", "services")
        self.addresses = storage.store("networking.k8s.io", "v1", "ipaddresses")
        self.cidrs = storage.store("networking.k8s.io", "v1", "servicecidrs")
        self.ports = NodePorts(PortRange(30000, 2768), StoredLedger(cacher.backend))
        self.later = 0
        self.events = storage.store("events.k8s.io", "v1", "events")
        self.repair = ServiceRepair(self.services, self.addresses, self.cidrs, self.events, self.ports, self._clock)

    def _clock(self) -> Instant:
        return Instant(now_instant().seconds + self.later)

    def counted(self, line: str) -> bool:
        return f"\napiserver_nodeport_repair_{line}\n" in render(self.ports.metrics.instruments()).decode()

    async def told(self) -> list[dict[str, Any]]:
        await self.events.cache.wait_fresh()
        events = [self.events.decode(entry) for entry in self.events.cache.entries()]
        return sorted(events, key=lambda event: str(event["message"]))

    async def fill(self) -> None:
        await DefaultServiceCIDR(self.cidrs, ["10.0.0.0/16"]).reconcile()
        await KubernetesService(self.services, self.addresses, "10.0.0.1", 6443, 30443).ensure()


@pytest.fixture
async def bench(storage: StorageFactory, cacher: Cacher) -> Bench:
    bench = Bench(storage, cacher)
    await bench.fill()
    return bench


async def test_what_services_have_is_kept_as_taken(bench: Bench) -> None:
    await remove(bench.addresses, "", "10.0.0.1")
    await bench.ports.change(lambda ports: ports.release(30443))
    await bench.repair.reconcile()
    assert await existing(bench.addresses, "", "10.0.0.1") is not None
    assert list(await bench.ports.peek()) == [30443]
    assert [(event["reportingComponent"], event["message"]) for event in await bench.told()] == [
        ("ipallocator-repair-controller", "Cluster IP [IPv4]: 10.0.0.1 is not allocated; repairing"),
        ("portallocator-repair-controller", "Port 30443 is not allocated; repairing"),
    ]
    assert bench.counted('port_errors_total{type="repair"} 1')
    assert bench.counted("reconcile_errors_total 0")


async def test_a_second_round_changes_nothing(bench: Bench) -> None:
    await bench.repair.reconcile()
    revision = bench.services.cache.revision
    await bench.repair.reconcile()
    assert bench.services.cache.revision == revision


async def test_ports_without_a_service_are_freed_after_some_rounds(bench: Bench) -> None:
    await bench.ports.change(lambda ports: ports.allocate(31000))
    kept = []
    for _ in range(4):
        await bench.repair.repair_ports()
        kept.append(31000 in await bench.ports.peek())
    assert kept[0] is True
    assert kept[-1] is False
    assert 30443 in await bench.ports.peek()
    assert bench.counted('port_errors_total{type="leak"} 1')


async def test_addresses_without_a_service_go_when_they_are_old_enough(bench: Bench) -> None:
    orphan: dict[str, Any] = KubernetesService(bench.services, bench.addresses, "10.0.0.9", 1).address()
    orphan["spec"]["parentRef"]["name"] = "gone"
    await create(bench.addresses, orphan)
    await bench.repair.repair_addresses()
    assert await existing(bench.addresses, "", "10.0.0.9") is not None
    bench.later = 120
    await bench.repair.repair_addresses()
    assert await existing(bench.addresses, "", "10.0.0.9") is None
    assert await existing(bench.addresses, "", "10.0.0.1") is not None
