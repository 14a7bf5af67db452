"""Allocation around writes of services: what they get, what they give back, and that nothing is handed out twice."""

from __future__ import annotations

import asyncio
import copy
import threading
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.controlplane.allocation import services
from pilothouse.controlplane.allocation.port_plans import PortPlan, plan_create
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.workers import LONG


async def test_a_cluster_ip(world: Any, service: Any, ctx: Context) -> None:
    w = world()
    obj = service()
    await (await w.server().allocate_create(ctx, obj)).commit()
    spec = obj["spec"]
    assert w.ips == {spec["clusterIP"]}
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    held = w.addresses.objects[spec["clusterIP"]]
    assert held["spec"]["parentRef"] == {"resource": "services", "namespace": "ns", "name": "a"}
    assert held["metadata"]["labels"]["ipaddress.kubernetes.io/ip-family"] == "IPv4"
    await w.server().release(obj)
    assert w.ips == set()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"clusterIP": "10.0.0.5"}, "failed to allocate IP 10.0.0.5: provided IP is already allocated"),
        (
            {"clusterIP": "10.9.0.5"},
            "failed to allocate IP 10.9.0.5: the provided network does not match the current range",
        ),
        (
            {"clusterIP": "10.0.0.255"},
            "failed to allocate IP 10.0.0.255: the provided network does not match the current range",
        ),
        ({"clusterIP": "fd00::1"}, "IPv6 is not configured on this cluster"),
        ({"ipFamilies": ["IPv6"]}, "not configured on this cluster"),
        ({"ipFamilyPolicy": "RequireDualStack"}, "this cluster is not configured for dual-stack services"),
        ({"clusterIPs": ["10.0.0.9"]}, "must be empty when `clusterIP` is not specified"),
        (
            {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30005}]},
            "provided port is already allocated",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "protocol": "TCP", "nodePort": 80}]},
            "provided port is not in the valid range. The range of valid ports is 30000-32767",
        ),
    ],
)
async def test_refusals_leave_nothing_behind(
    world: Any, service: Any, ctx: Context, spec: dict[str, Any], message: str
) -> None:
    w = world()
    port = {"port": 80, "protocol": "TCP", "nodePort": 30005}
    first = service("first", type="NodePort", clusterIP="10.0.0.5", ports=[port])
    await w.server().allocate_create(ctx, first)
    with pytest.raises(StatusError) as caught:
        await w.server().allocate_create(ctx, service(**spec))
    assert caught.value.code == 422
    assert caught.value.message.endswith(f": {message}")
    assert (w.ips, w.ports) == ({"10.0.0.5"}, {30005})


@pytest.mark.parametrize(("wanted", "shown"), [({}, ""), ({"clusterIP": "10.0.0.9"}, " 10.0.0.9")])
async def test_a_service_without_a_name(
    world: Any, service: Any, ctx: Context, wanted: dict[str, Any], shown: str
) -> None:
    w = world()
    obj = service(**wanted)
    del obj["metadata"]["name"]
    with pytest.raises(StatusError) as refusal:
        await w.server().allocate_create(ctx, obj)
    assert f"failed to allocate IP{shown}: IPAddress.networking.k8s.io " in refusal.value.message
    assert refusal.value.message.endswith(" is invalid: spec.parentRef.name: Required value")
    assert w.ips == set()


async def test_health_check_ports_are_refused_as_failures(world: Any, service: Any, ctx: Context) -> None:
    w = world()
    local = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30007}
    first = service(**local)
    await w.server().allocate_create(ctx, first)
    with pytest.raises(StatusError) as caught:
        await w.server().allocate_create(ctx, service("b", **local))
    assert caught.value.code == 500
    assert caught.value.message == (
        "Internal error occurred: failed to allocate requested HealthCheck NodePort 30007: "
        "provided port is already allocated"
    )
    assert len(w.ports) == 2
    await w.server().release(first)
    assert (w.ips, w.ports) == (set(), set())


async def test_undo(world: Any, service: Any, ctx: Context) -> None:
    w = world()
    allocation = await w.server().allocate_create(ctx, service(type="NodePort"))
    assert len(w.ips) == len(w.ports) == 1
    await allocation.undo()
    assert (w.ips, w.ports) == (set(), set())


async def test_two_protocols_share_a_node_port(world: Any, service: Any, ctx: Context) -> None:
    w = world()
    ports = [{"name": "t", "port": 53, "protocol": "TCP"}, {"name": "u", "port": 53, "protocol": "UDP"}]
    obj = service(type="NodePort", ports=ports)
    await w.server().allocate_create(ctx, obj)
    assert {port["nodePort"] for port in obj["spec"]["ports"]} == w.ports
    assert len(w.ports) == 1


async def test_a_full_range(world: Any, service: Any, ctx: Context) -> None:
    w = world("10.0.0.0/30", ports="30000-30001")
    for name in ("a", "b"):
        await w.server().allocate_create(ctx, service(name, type="NodePort"))
    with pytest.raises(StatusError, match='failed to allocate a serviceIP for Service "c": range is full'):
        await w.server().allocate_create(ctx, service("c"))
    headless = service("d", type="NodePort", clusterIP="None")
    with pytest.raises(StatusError, match="failed to allocate a nodePort: range is full"):
        await w.server().allocate_create(ctx, headless)


async def test_dry_runs_keep_nothing(world: Any, service: Any) -> None:
    w = world()
    dry = Context(namespace="ns", dry_run=True)
    taken = service("taken", clusterIP="10.0.0.5")
    await w.server().allocate_create(Context(namespace="ns"), taken)
    obj = service(type="NodePort", clusterIP="10.0.0.5")
    await (await w.server().allocate_create(dry, obj)).commit()
    assert obj["spec"]["ports"][0]["nodePort"] == 32769
    other = service("b")
    allocation = await w.server().allocate_create(dry, other)
    await allocation.undo()
    assert other["spec"]["clusterIP"] == "10.0.0.0"
    assert (w.ips, w.ports) == ({"10.0.0.5"}, set())
    with pytest.raises(StatusError, match=r"the provided IP \(10\.9\.9\.9\) is not in the valid range"):
        await w.server().allocate_create(dry, service(clusterIP="10.9.9.9"))


async def test_changes_of_type(world: Any, service: Any, ctx: Context) -> None:
    w = world()
    server = w.server()
    obj = service(type="LoadBalancer", externalTrafficPolicy="Local")
    await server.allocate_create(ctx, obj)
    assert len(w.ports) == 2
    plain = copy.deepcopy(obj)
    plain["spec"].update(type="ClusterIP", externalTrafficPolicy="")
    allocation = await server.allocate_update(ctx, plain, obj)
    assert len(w.ports) == 2, "ports are given back after the write only"
    await allocation.commit()
    assert w.ports == set()
    name = copy.deepcopy(plain)
    name["spec"].update(type="ExternalName")
    await (await server.allocate_update(ctx, name, plain)).commit()
    assert w.ips == set()
    bare = {"metadata": name["metadata"], "spec": {"type": "ExternalName", "externalName": "a.b"}}
    back = copy.deepcopy(bare)
    back["spec"]["type"] = "ClusterIP"
    allocation = await server.allocate_update(ctx, back, bare)
    assert w.ips == set(back["spec"]["clusterIPs"])
    await allocation.undo()
    assert w.ips == set()


async def test_a_manifest_can_be_sent_again(world: Any, service: Any, ctx: Context) -> None:
    w = world()
    server = w.server()
    obj = service(type="NodePort")
    await server.allocate_create(ctx, obj)
    again = service(type="NodePort")
    await (await server.allocate_update(ctx, again, obj)).commit()
    assert again["spec"] == obj["spec"]
    assert (len(w.ips), len(w.ports)) == (1, 1)


async def test_a_second_family_comes_and_goes(world: Any, service: Any, ctx: Context) -> None:
    w = world("10.0.0.0/24", "fd00::/112", families=("IPv4", "IPv6"))
    server = w.server()
    obj = service()
    await server.allocate_create(ctx, obj)
    dual = copy.deepcopy(obj)
    dual["spec"]["ipFamilyPolicy"] = "RequireDualStack"
    await (await server.allocate_update(ctx, dual, obj)).commit()
    assert dual["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    assert w.ips == set(dual["spec"]["clusterIPs"])
    shrunk = copy.deepcopy(dual)
    shrunk["spec"]["clusterIPs"] = shrunk["spec"]["clusterIPs"][:1]
    with pytest.raises(StatusError, match="must be 'SingleStack' to release the secondary cluster IP"):
        await server.allocate_update(ctx, shrunk, dual)
    single = copy.deepcopy(dual)
    single["spec"]["ipFamilyPolicy"] = "SingleStack"
    await (await server.allocate_update(ctx, single, dual)).commit()
    assert single["spec"]["clusterIPs"] == obj["spec"]["clusterIPs"]
    assert w.ips == set(obj["spec"]["clusterIPs"])


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        ({"clusterIP": "None"}, ["IPv4", "IPv6"], "RequireDualStack"),
        ({"clusterIP": "None", "selector": {"a": "b"}}, ["IPv4"], "SingleStack"),
        ({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4"], "PreferDualStack"),
    ],
)
async def test_families_on_a_single_stack_cluster(
    world: Any, service: Any, ctx: Context, spec: dict[str, Any], families: list[str], policy: str
) -> None:
    obj = service(**spec)
    await world().server().allocate_create(ctx, obj)
    assert (obj["spec"]["ipFamilies"], obj["spec"]["ipFamilyPolicy"]) == (families, policy)


async def test_ranges_come_and_go(world: Any, service: Any, ctx: Context) -> None:
    w = world("10.0.0.0/30", "10.1.0.0/30")
    w.addresses.cidrs[0]["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    server = w.server()
    for name in ("a", "b"):
        await server.allocate_create(ctx, service(name))
    assert w.ips == {"10.1.0.1", "10.1.0.2"}
    w.addresses.cidrs[0]["status"]["conditions"][0]["status"] = "True"
    obj = service("c")
    await server.allocate_create(ctx, obj)
    assert obj["spec"]["clusterIP"].startswith("10.0.0.")
    w.addresses.cidrs.clear()
    with pytest.raises(StatusError, match="range is full"):
        await server.allocate_create(ctx, service("d"))


async def test_an_address_goes_with_the_service_that_has_it_whoever_it_is_held_for(
    world: Any, service: Any, ctx: Context
) -> None:
    w = world()
    obj = service("a", clusterIP="10.0.0.5")
    await w.server().allocate_create(ctx, obj)
    w.addresses.objects["10.0.0.5"]["spec"]["parentRef"]["name"] = "other"
    await w.server().release(obj)
    assert w.ips == set()


async def test_a_port_that_was_just_handed_out_cannot_be_asked_for(world: Any, service: Any, ctx: Context) -> None:
    w = world(ports="30000-30000")
    old = service("a")
    await w.server().allocate_create(ctx, old)
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP", "nodePort": 30000}]
    changed = service("a", type="NodePort", ports=ports, clusterIP=old["spec"]["clusterIP"])
    with pytest.raises(StatusError, match="provided port is already allocated"):
        await w.server().allocate_update(ctx, changed, old)
    assert w.ports == set()


async def test_many_writers_on_several_servers(world: Any, service: Any, ctx: Context) -> None:
    """Nothing is handed out twice, and what fails or is removed leaves nothing behind."""
    w = world("10.0.0.0/25", ports="30000-30099")
    servers = [w.server(seed) for seed in range(4)]
    kept: list[dict[str, Any]] = []

    async def write(at: int) -> None:
        server = servers[at % len(servers)]
        obj = service(f"s{at}", type="NodePort")
        try:
            allocation = await server.allocate_create(ctx, obj)
        except StatusError:
            return
        await asyncio.sleep(0)
        if at % 3 == 0:
            await allocation.undo()
            return
        await allocation.commit()
        if at % 3 == 1:
            await server.release(obj)
        else:
            kept.append(obj)

    await asyncio.gather(*(write(at) for at in range(240)))
    ips = [obj["spec"]["clusterIP"] for obj in kept]
    ports = [obj["spec"]["ports"][0]["nodePort"] for obj in kept]
    assert len(set(ips)) == len(ips)
    assert len(set(ports)) == len(ports)
    assert (set(ips), set(ports)) == (w.ips, w.ports)
    assert len(kept) > 20


@pytest.mark.parametrize("dry_run", [False, True])
async def test_the_ports_of_a_long_service_are_chosen_aside(
    world: Any, service: Any, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    threads = set()

    def plan(spec: Any, name: str, ports: Any) -> PortPlan:
        threads.add(threading.current_thread())
        return plan_create(spec, name, ports)

    monkeypatch.setattr(services, "plan_create", plan)
    ctx = Context(namespace="ns", now="2026-01-02T03:04:05Z", dry_run=dry_run, weight=LONG)
    await world().server().allocate_create(ctx, service(type="NodePort", ports=[{"port": 1}]))
    assert threads and threading.main_thread() not in threads
