"""Definitions come and go, and nothing of those that went is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pilothouse.controllers.runtime.client import LoopbackClients, ResourceClient
from pilothouse.machinery import errors
from pilothouse.machinery.gvk import GroupVersionResource
from pilothouse.testing.in_process import InProcessServer

WIDGETS = GroupVersionResource("example.com", "v1", "widgets")
SCHEMA = {"openAPIV3Schema": {"type": "object"}}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
    },
}
ABSENT = {"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "absent"}


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not is_so():
            await asyncio.sleep(0.01)


async def gone(client: ResourceClient, name: str) -> None:
    """Return when the garbage collector has taken an object."""
    async with asyncio.timeout(120):
        while True:
            try:
                await client.get("default", name)
            except errors.NotFound:
                return
            await asyncio.sleep(0.01)


async def test_a_definition_that_went_leaves_no_informer() -> None:
    """The collector follows every kind; one that comes back is followed again."""
    async with InProcessServer("--controllers=garbage-collector-controller") as server:
        informers = server.process.cluster.informers
        client = LoopbackClients(server.process.cluster.handler).api_server()
        definitions = client.of("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        widgets = client.of("example.com", "v1", "widgets")
        for _ in range(2):
            await definitions.create(DEFINITION)
            await until(lambda: str(WIDGETS.group_resource) in informers.names())
            await informers.of(*WIDGETS).wait_synced()
            metadata = {"name": "a", "namespace": "default", "ownerReferences": [ABSENT]}
            await widgets.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata})
            await gone(widgets, "a")
            await definitions.delete("", "widgets.example.com")
            await until(lambda: str(WIDGETS.group_resource) not in informers.names())


async def test_whoever_still_has_an_informer_finds_it_at_work_again() -> None:
    async with InProcessServer() as server:
        informers = server.process.cluster.informers
        client = LoopbackClients(server.process.cluster.handler).api_server()
        definitions = client.of("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        kept = informers.of(*WIDGETS)
        assert await informers.retire(WIDGETS)
        assert str(WIDGETS.group_resource) not in informers.names()
        await definitions.create(DEFINITION)
        async with asyncio.timeout(120):
            await kept.wait_synced()
        assert informers.of(*WIDGETS) is kept
        assert not await informers.retire(WIDGETS), "it is served"
