"""In-memory places for addresses and ports, and the allocator over them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.controlplane.allocation.cluster_ips import ClusterIPs
from pilothouse.controlplane.allocation.metrics import AllocationMetrics
from pilothouse.controlplane.allocation.node_ports import NodePorts
from pilothouse.controlplane.allocation.ranges import PortRange
from pilothouse.controlplane.allocation.services import ServiceAllocations
from pilothouse.machinery.objects import Object


class Addresses:
    """IPAddress objects; every write gives way to others, as real ones do."""

    def __init__(self, *blocks: str) -> None:
        self.cidrs: list[Object] = [
            {"metadata": {"name": f"c{at}"}, "spec": {"cidrs": [block]}} for at, block in enumerate(blocks)
        ]
        self.objects: dict[str, Object] = {}
        self.revision = 0

    def names(self) -> list[str]:
        return list(self.objects)

    async def ready(self) -> None:
        await asyncio.sleep(0)

    def ranges(self) -> Sequence[Object]:
        return self.cidrs

    def is_taken(self, name: str) -> bool:
        return name in self.objects

    async def create(self, obj: Object) -> bool:
        await asyncio.sleep(0)
        self.revision += 1
        return self.objects.setdefault(obj["metadata"]["name"], obj) is obj

    async def delete(self, name: str) -> None:
        await asyncio.sleep(0)
        self.revision += 1
        self.objects.pop(name, None)


class Ledger:
    """A bitmap that is replaced only if unchanged."""

    def __init__(self) -> None:
        self.state = ("", 0, 0)

    async def read(self) -> tuple[str, int, int]:
        await asyncio.sleep(0)
        return self.state

    async def write(self, range_: str, bits: int, version: int) -> int | None:
        await asyncio.sleep(0)
        if version != self.state[2]:
            return None
        self.state = (range_, bits, version + 1)
        return version + 1


class World:
    """Places, and any number of servers that share them."""

    def __init__(self, blocks: Sequence[str], ports: str, families: Sequence[str]) -> None:
        self.addresses = Addresses(*blocks)
        self.ledger = Ledger()
        self.range = PortRange.parse(ports)
        self.families = families
        self.metrics = AllocationMetrics(self.addresses)

    def server(self, seed: int = 1) -> ServiceAllocations:
        ports = NodePorts(self.range, self.ledger, Random(seed), self.metrics)
        return ServiceAllocations(self.families, ClusterIPs(self.addresses, Random(seed), self.metrics), ports)

    @property
    def ports(self) -> set[int]:
        return {self.range.first + at for at in range(self.range.size) if self.ledger.state[1] >> at & 1}

    @property
    def ips(self) -> set[str]:
        return set(self.addresses.objects)


@pytest.fixture
def world() -> Any:
    """``world(blocks, ports, families)``."""

    def make(*blocks: str, ports: str = "30000-32767", families: Sequence[str] = ("IPv4",)) -> World:
        return World(blocks or ("10.0.0.0/24",), ports, families)

    return make


@pytest.fixture
def service() -> Any:
    """``service(type="NodePort", …)``: a defaulted service."""

    def make(name: str = "a", **spec: Any) -> Object:
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("ports", [{"port": 80, "protocol": "TCP"}])
        return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}

    return make


@pytest.fixture
def ctx() -> Context:
    return Context(namespace="ns", now="2026-01-02T03:04:05Z")
