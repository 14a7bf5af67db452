"""What is counted while services take addresses and ports and give them back."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.controlplane.allocation.metrics import AllocationMetrics
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.metrics import render


def shown(metrics: AllocationMetrics) -> dict[str, float]:
    lines = render(metrics.instruments()).decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#") and "_seconds_" not in line)
    return {name.removeprefix("kube_apiserver_"): float(value) for name, value in pairs}


async def test_addresses(world: Any, service: Any, ctx: Context) -> None:
    w = world("10.0.0.0/29")
    server, held = w.server(), []
    for name, wanted in (("a", "10.0.0.3"), ("b", "")):
        held.append(service(name, **({"clusterIP": wanted} if wanted else {})))
        await (await server.allocate_create(ctx, held[-1])).commit()
    with pytest.raises(StatusError):
        await server.allocate_create(ctx, service("c", clusterIP="10.0.0.3"))
    label = 'cidr="10.0.0.0/29"'
    found = shown(w.metrics)
    assert found[f"clusterip_allocator_allocated_ips{{{label}}}"] == 2
    assert found[f"clusterip_allocator_available_ips{{{label}}}"] == 4
    assert found[f'clusterip_allocator_allocation_total{{{label},scope="static"}}'] == 1
    assert found[f'clusterip_allocator_allocation_total{{{label},scope="dynamic"}}'] == 1
    assert found[f'clusterip_allocator_allocation_errors_total{{{label},scope="static"}}'] == 1
    for obj in held:
        await server.release(obj)
    assert shown(w.metrics)[f"clusterip_allocator_allocated_ips{{{label}}}"] == 0


async def test_a_full_block(world: Any, service: Any, ctx: Context) -> None:
    w = world("10.0.0.0/30")
    server = w.server()
    for name in ("a", "b"):
        await server.allocate_create(ctx, service(name))
    with pytest.raises(StatusError):
        await server.allocate_create(ctx, service("c"))
    found = shown(w.metrics)
    assert found['clusterip_allocator_available_ips{cidr="10.0.0.0/30"}'] == 0
    assert found['clusterip_allocator_allocation_errors_total{cidr="10.0.0.0/30",scope="dynamic"}'] == 1


async def test_addresses_of_both_families(world: Any, service: Any, ctx: Context) -> None:
    w = world("10.0.0.0/24", "fd00::/112", families=("IPv4", "IPv6"))
    server = w.server()
    for number in range(3):
        await (await server.allocate_create(ctx, service(f"s{number}", ipFamilyPolicy="RequireDualStack"))).commit()
    stray = {"metadata": {"name": "not an address"}}
    assert await w.addresses.create(stray)
    found = shown(w.metrics)
    assert found['clusterip_allocator_allocated_ips{cidr="10.0.0.0/24"}'] == 3
    assert found['clusterip_allocator_allocated_ips{cidr="fd00::/112"}'] == 3
    assert found['clusterip_allocator_available_ips{cidr="fd00::/112"}'] == 65535 - 3


async def test_ports(world: Any, service: Any, ctx: Context) -> None:
    w = world(ports="30000-30009")
    assert shown(w.metrics)["nodeport_allocator_allocated_ports"] == 0
    server = w.server()
    named = [{"port": 80, "protocol": "TCP", "nodePort": 30003}, {"port": 81, "protocol": "TCP"}]
    first = service("a", type="NodePort", ports=named)
    await (await server.allocate_create(ctx, first)).commit()
    for wanted in (30003, 40000):
        ports = [{"port": 80, "protocol": "TCP", "nodePort": wanted}]
        with pytest.raises(StatusError):
            await server.allocate_create(ctx, service("b", type="NodePort", ports=ports))
    found = shown(w.metrics)
    assert found["nodeport_allocator_allocated_ports"] == 2
    assert found["nodeport_allocator_available_ports"] == 8
    assert found['nodeport_allocator_allocation_total{scope="static"}'] == 1
    assert found['nodeport_allocator_allocation_total{scope="dynamic"}'] == 1
    assert found['nodeport_allocator_allocation_errors_total{scope="static"}'] == 2
    await server.release(first)
    assert shown(w.metrics)["nodeport_allocator_allocated_ports"] == 0


async def test_dry_runs_count_nothing(world: Any, service: Any) -> None:
    w = world()
    before = shown(w.metrics)
    await w.server().allocate_create(Context(dry_run=True), service(type="NodePort"))
    assert shown(w.metrics) == before
