"""What is behind a service: its address, the address of another name, or one of its endpoints."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.net.dialing import OutgoingError
from pilothouse.registry.service_routing import ServiceResolver, candidates
from pilothouse.testing.in_process import InProcessServer

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
PORTS = [{"name": "https", "port": 443, "targetPort": 8443}, {"name": "other", "port": 80}]


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer("--controllers=-*") as running:
        yield running


def resolver(server: InProcessServer, *, by_endpoints: bool = False) -> ServiceResolver:
    return ServiceResolver(server.process.cluster.storage, by_endpoints=by_endpoints)


async def create(server: InProcessServer, path: str, name: str, **content: Any) -> dict[str, Any]:
    answer = await server.request("POST", path, {"metadata": {"name": name, **content.pop("metadata", {})}, **content})
    assert answer.status == 201, answer.body
    created: dict[str, Any] = answer.json
    return created


def piece(kind: str, *endpoints: dict[str, Any], name: str = "https", port: int | None = 8443) -> dict[str, Any]:
    return {"addressType": kind, "endpoints": list(endpoints), "ports": [{"name": name, "port": port}]}


def endpoint(address: str, *, ready: bool | None = True) -> dict[str, Any]:
    return {"addresses": [address], "conditions": {} if ready is None else {"ready": ready}}


async def test_a_cluster_address_and_what_changes_it(server: InProcessServer) -> None:
    found = await create(server, SERVICES, "api", spec={"ports": PORTS})
    routing = resolver(server)
    for _ in range(2):  # read, and remembered
        assert await routing.resolve("default", "api", 443) == (found["spec"]["clusterIP"], 443)
    assert await routing.dial("api.default.svc", 80) == (found["spec"]["clusterIP"], 80)
    with pytest.raises(OutgoingError, match='no service port 8443 found for service "api"'):
        await routing.resolve("default", "api", 8443)
    await server.request("DELETE", f"{SERVICES}/api")
    with pytest.raises(OutgoingError, match='service "api" not found'):
        await routing.resolve("default", "api", 443)
    again = await create(server, SERVICES, "api", spec={"type": "ExternalName", "externalName": "elsewhere.example"})
    assert again["spec"].get("clusterIP") is None
    assert await routing.resolve("default", "api", 9443) == ("elsewhere.example", 9443)


async def test_what_was_located_holds_until_its_own_service_changes(server: InProcessServer) -> None:
    await create(server, SERVICES, "api", spec={"ports": PORTS})
    routing = resolver(server)
    located = await routing.locate("default", "api", 443)
    assert routing.is_current(located)
    await create(server, SERVICES, "other", spec={"ports": PORTS})
    assert routing.is_current(located)
    await server.request("DELETE", f"{SERVICES}/other")
    assert routing.is_current(located)
    await server.request("DELETE", f"{SERVICES}/api")
    assert not routing.is_current(located)


async def test_services_without_an_address(server: InProcessServer) -> None:
    await create(server, SERVICES, "headless", spec={"clusterIP": "None", "ports": PORTS})
    with pytest.raises(OutgoingError, match='cannot route to service with ClusterIP "None"'):
        await resolver(server).resolve("default", "headless", 443)
    with pytest.raises(OutgoingError, match='service "headless" not found'):
        await resolver(server).resolve("kube-system", "headless", 443)


async def test_endpoints(server: InProcessServer) -> None:
    await create(server, SERVICES, "api", spec={"ports": PORTS})
    await create(server, SERVICES, "named", spec={"type": "ExternalName", "externalName": "elsewhere.example"})
    routing = resolver(server, by_endpoints=True)
    with pytest.raises(OutgoingError, match='no endpoints available for service "api"'):
        await routing.resolve("default", "api", 443)
    with pytest.raises(OutgoingError, match='unsupported service type "ExternalName"'):
        await routing.resolve("default", "named", 443)
    labelled = {"labels": {"kubernetes.io/service-name": "api"}}
    unready, ready = endpoint("10.0.0.1", ready=False), endpoint("10.0.0.2")
    await create(server, SLICES, "api-1", metadata=labelled, **piece("IPv4", unready, ready))
    other = {"labels": {"kubernetes.io/service-name": "other"}}
    await create(server, SLICES, "other-1", metadata=other, **piece("IPv4", endpoint("10.0.0.9")))
    for _ in range(20):
        assert await routing.resolve("default", "api", 443) == ("10.0.0.2", 8443)


def test_the_preferred_family_comes_first_and_the_rest_at_random() -> None:
    slices = [piece("IPv6", endpoint("fd00::1")), piece("IPv4", *(endpoint(f"10.0.0.{n}") for n in range(4)))]
    firsts = set()
    for seed in range(50):
        found = [address for _, address in candidates(slices, "https", "IPv4", random.Random(seed))]
        assert len(found) == 5 and found[-1] == ("fd00::1", 8443)
        firsts.add(found[0])
    assert len(firsts) == 4


@pytest.mark.parametrize(
    "of",
    [
        piece("IPv4"),
        piece("IPv4", endpoint("10.0.0.1"), name="other"),
        piece("IPv4", endpoint("10.0.0.1"), port=None),
        piece("IPv4", endpoint("10.0.0.1", ready=False)),
        piece("IPv4", {"addresses": []}),
        {"addressType": "IPv4", "endpoints": None, "ports": None},
    ],
)
def test_what_serves_nothing(of: dict[str, Any]) -> None:
    assert list(candidates([of], "https", "IPv4")) == []


def test_readiness_that_nobody_knows_is_enough() -> None:
    found = list(candidates([piece("IPv4", endpoint("10.0.0.1", ready=None))], "https", "IPv4"))
    assert [address for _, address in found] == [("10.0.0.1", 8443)]
