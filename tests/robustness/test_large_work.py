"""Honest work that is large does not hold the event loop: the meter that servers run says so.

It counts processor time, so that a busy machine does not matter. The bound is five times that of the documentation, and
a fifth or less of what each request takes if it is made in one go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.apis.strategy import Context
from pilothouse.controlplane.allocation.services import ServiceAllocations
from pilothouse.controlplane.bootstrap.service_repair import ServiceRepair
from pilothouse.machinery.stall_meter import LIMIT_SECONDS, StallMeter
from pilothouse.testing.in_process import InProcessServer

MAPS = "/api/v1/namespaces/default/configmaps"
NOW = "2026-01-02T03:04:05Z"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
METADATA = "as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PROTOBUF = "application/vnd.kubernetes.protobuf"
KEYS, OBJECTS, BINDINGS, SERVICES = 20_000, 2_000, 4_000, 4_000


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer("--controllers=-*", "--service-cluster-ip-range=10.0.0.0/16") as running:
        yield running


class Measured:
    """Requests, and the longest hold of the loop during each."""

    def __init__(self, server: InProcessServer) -> None:
        self._server = server
        self.meter = StallMeter()
        self.meter.start()

    async def ask(self, method: str, path: str, body: Any = None, status: int = 200, **headers: str) -> None:
        self.meter.forget()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self._server.request(method, path, body, sent)
        assert answer.status == status
        await self.check(f"{method} {path} {sent}")

    async def check(self, what: str) -> None:
        await asyncio.sleep(0)  # what was done last has ended its turn
        assert self.meter.longest < 5 * LIMIT_SECONDS, f"{what}\n{self.meter.stack}"


@pytest.fixture
async def measured(server: InProcessServer) -> AsyncIterator[Measured]:
    found = Measured(server)
    yield found
    found.meter.stop()


def large(value: str) -> dict[str, Any]:
    data = {f"key-{number}": value for number in range(KEYS)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data}


async def test_an_object_with_very_many_entries(measured: Measured) -> None:
    one = f"{MAPS}/large"
    await measured.ask("POST", MAPS, large("1"), 201)
    await measured.ask("PUT", one, large("2"))
    change = {"data": {"key-1": "other"}}
    await measured.ask("PATCH", one, change, content_type="application/strategic-merge-patch+json")
    await measured.ask("PATCH", one, change, content_type="application/merge-patch+json")
    applied = f"{one}?fieldManager=other&force=true"
    await measured.ask("PATCH", applied, large("3"), content_type="application/apply-patch+yaml")
    for form in (PROTOBUF, TABLE, f"{PROTOBUF};{METADATA}"):
        await measured.ask("GET", MAPS, accept=form)
    await measured.ask("DELETE", one)


async def create_all(server: InProcessServer, group: str, resource: str, objects: list[dict[str, Any]]) -> None:
    """Create objects, a few at a time."""
    store = server.process.cluster.storage.store(group, "v1", resource)
    for start in range(0, len(objects), 20):
        some = objects[start : start + 20]
        await asyncio.gather(*(store.create(Context(namespace="default", now=NOW), obj) for obj in some))


async def test_lists_of_many_objects_that_nobody_has_seen(server: InProcessServer, measured: Measured) -> None:
    objects = [{"metadata": {"name": f"map-{number}"}, "data": {"a": "x" * 200}} for number in range(OBJECTS)]
    await create_all(server, "", "configmaps", objects)
    for form in (TABLE, PROTOBUF, f"application/json;{METADATA}", f"{PROTOBUF};{METADATA}"):
        await measured.ask("GET", MAPS, accept=form)
    await measured.ask("GET", f"{MAPS}?pretty=true")
    await measured.ask("GET", MAPS, accept_encoding="gzip")
    await measured.ask("GET", f"{MAPS}?labelSelector=a%3Db")


async def test_access_with_many_bindings(server: InProcessServer, measured: Measured) -> None:
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "view"}

    def make_bindings() -> list[dict[str, Any]]:
        return [
            {
                "metadata": {"name": f"binding-{number}"},
                "roleRef": role,
                "subjects": [{"apiGroup": group, "kind": "User", "name": f"user-{number}"}],
            }
            for number in range(BINDINGS)
        ]

    bindings = await asyncio.to_thread(make_bindings)  # which is not the server's work
    await create_all(server, group, "rolebindings", bindings)
    await measured.check("creating bindings")
    asked = {"verb": "list", "resource": "pods", "namespace": "default"}
    review = {"spec": {"user": "user-7", "resourceAttributes": asked}}
    await measured.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, 201)
    labels = {"metadata": {"labels": {"a": "b"}}}
    merge = "application/merge-patch+json"
    await measured.ask("PATCH", f"/apis/{group}/v1/clusterroles/view", labels, content_type=merge)
    await measured.ask("GET", f"/apis/{group}/v1/rolebindings", accept=TABLE)


async def test_repair_of_many_services(server: InProcessServer, measured: Measured) -> None:
    def make_service(number: int) -> dict[str, Any]:
        ports = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
        spec = {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster", "ports": ports}
        return {"metadata": {"name": f"service-{number}"}, "spec": spec}

    await create_all(server, "", "services", [make_service(number) for number in range(SERVICES)])
    storage = server.process.cluster.storage
    stores = [
        storage.store(group, "v1", resource)
        for group, resource in (
            ("", "services"),
            ("networking.k8s.io", "ipaddresses"),
            ("networking.k8s.io", "servicecidrs"),
            ("events.k8s.io", "events"),
        )
    ]
    assert len(stores[1].cache) > SERVICES
    allocations = stores[0].reservations
    assert isinstance(allocations, ServiceAllocations)
    measured.meter.forget()
    await ServiceRepair(*stores, allocations.node_ports).reconcile()
    await measured.check("repair of services")
    await measured.ask("GET", "/metrics")
