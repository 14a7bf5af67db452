"""What is known of the services behind APIServices."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.aggregator.availability import RemoteAvailability, Unavailability, judge
from pilothouse.controllers.own_objects import condition_of, create, existing, remove
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery.supervision import Supervisor
from pilothouse.registry.storage import StorageFactory

REFERENCE = {"namespace": "ns", "name": "ext", "port": 443}
NAME = "v1.example.com"


def service(kind: str = "ClusterIP", *ports: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"type": kind, "ports": list(ports)}}


def endpoint_slice(port: str | None = "https", ready: bool | None = True) -> dict[str, Any]:
    conditions = {} if ready is None else {"ready": ready}
    named = {} if port is None else {"name": port}
    return {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions}], "ports": [{"port": 8443, **named}]}


HTTPS = {"name": "https", "port": 443}


@pytest.mark.parametrize(
    ("found", "slices", "error"),
    [
        (None, [], Unavailability("ServiceNotFound", 'service/ext in "ns" is not present')),
        (service("ExternalName"), [], None),
        (service(), [], Unavailability("ServicePortError", 'service/ext in "ns" is not listening on port 443')),
        (
            service("ClusterIP", {"port": 80}),
            [endpoint_slice()],
            Unavailability("ServicePortError", 'service/ext in "ns" is not listening on port 443'),
        ),
        (
            service("ClusterIP", HTTPS),
            [],
            Unavailability("EndpointsNotFound", 'cannot find endpointslices for service/ext in "ns"'),
        ),
        (
            service("ClusterIP", HTTPS),
            [endpoint_slice(ready=False), endpoint_slice("other"), endpoint_slice(None)],
            Unavailability(
                "MissingEndpoints", 'endpointslices for service/ext in "ns" have no addresses with port name "https"'
            ),
        ),
        (service("ClusterIP", HTTPS), [endpoint_slice(ready=False), endpoint_slice()], None),
        (service("ClusterIP", HTTPS), [endpoint_slice(ready=None)], None),
        (
            service("ClusterIP", HTTPS),
            [{"ports": [HTTPS]}],
            Unavailability(
                "MissingEndpoints", 'endpointslices for service/ext in "ns" have no addresses with port name "https"'
            ),
        ),
    ],
)
def test_judging(found: dict[str, Any] | None, slices: list[dict[str, Any]], error: Unavailability | None) -> None:
    assert judge(REFERENCE, found, slices) == error


@pytest.fixture
async def availability(
    storage: StorageFactory, informers: InformerFactory, supervisor: Supervisor
) -> RemoteAvailability:
    made = RemoteAvailability(storage.store("apiregistration.k8s.io", "v1", "apiservices"), informers)
    await made.start(supervisor)
    return made


async def reason(storage: StorageFactory, wanted: str) -> dict[str, Any]:
    """The condition once it has this reason."""
    store = storage.store("apiregistration.k8s.io", "v1", "apiservices")
    watcher = await store.cache.watch()
    async with asyncio.timeout(120):
        while True:
            condition = condition_of(await existing(store, "", NAME) or {}, "Available") or {}
            if condition.get("reason") == wanted:
                watcher.stop()
                return condition
            await watcher.next_batch()


async def test_conditions_follow_services(storage: StorageFactory, availability: RemoteAvailability) -> None:
    spec = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 10, "versionPriority": 5}
    remote = {**spec, "insecureSkipTLSVerify": True, "service": {"namespace": "ns", "name": "ext", "port": 443}}
    store = storage.store("apiregistration.k8s.io", "v1", "apiservices")
    await create(store, {"metadata": {"name": NAME}, "spec": remote, "status": {}})
    first = await reason(storage, "ServiceNotFound")
    services = storage.store("", "v1", "services")
    ports = [{"name": "https", "port": 443, "protocol": "TCP"}]
    headless = {"clusterIP": "None", "clusterIPs": ["None"], "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    found = {"metadata": {"name": "ext", "namespace": "ns"}, "status": {"loadBalancer": {}}}
    await create(services, {**found, "spec": {"type": "ClusterIP", "ports": ports, **headless}})
    second = await reason(storage, "EndpointsNotFound")
    assert (first["status"], second["status"]) == ("False", "False")
    assert second["lastTransitionTime"] == first["lastTransitionTime"]
    await remove(services, "ns", "ext")
    await reason(storage, "ServiceNotFound")
