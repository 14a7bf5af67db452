"""Pods that nobody has room for are made at a pace."""

from __future__ import annotations

import asyncio

import pytest

from pilothouse.controllers.runtime import creation_pace
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.creation_pace import CreationPace
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.in_process import InProcessServer


async def test_while_very_many_wait_for_a_node_a_few_more_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation_pace, "_MOST_WAITING", 3)
    async with InProcessServer("--disable-admission-plugins=ServiceAccount") as server:
        pods = LoopbackClients(server.process.cluster.handler).api_server().of("", "v1", "pods")
        informer, clock = server.process.cluster.informers.of("", "v1", "pods"), FakeClock()
        pace = CreationPace(informer, clock)

        async def make(name: str, **spec: str) -> None:
            metadata = {"name": name, "namespace": "default"}
            await pods.create({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})
            async with asyncio.timeout(120):
                while informer.lister.get("default", name) is None:
                    await asyncio.sleep(0)

        for number in range(3):
            await make(f"placed{number}", nodeName="a")
        for number in range(2):
            await make(f"waiting{number}")
        assert pace.allow("default", 500) == 500
        await make("waiting2")
        assert pace.allow("other", 500) == 500
        assert [pace.allow("default", 500) for _ in range(2)] == [0, 0]
        clock.advance(0.5)
        assert [pace.allow("default", 500) for _ in range(2)] == [10, 0]
        clock.advance(60)
        assert [pace.allow("default", 5), pace.allow("default", 500)] == [5, 15]
        await pods.delete("default", "waiting2")
        async with asyncio.timeout(120):
            while informer.lister.get("default", "waiting2") is not None:
                await asyncio.sleep(0)
        assert pace.allow("default", 500) == 500


async def test_controllers_keep_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made at once is made; more comes at the pace alone, whichever controller it is."""
    monkeypatch.setattr(creation_pace, "_MOST_WAITING", 1)
    monkeypatch.setattr(creation_pace, "_RATE", 0.0)
    controllers = "--controllers=replicaset-controller,statefulset-controller,job-controller"
    async with InProcessServer("--disable-admission-plugins=ServiceAccount", controllers) as server:
        client = LoopbackClients(server.process.cluster.handler).api_server()
        lister = server.process.cluster.informers.of("", "v1", "pods").lister
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}

        async def make(group: str, resource: str, namespace: str, **more: object) -> None:
            metadata = {"name": resource, "namespace": namespace}
            await client.of(group, "v1", resource).create({"metadata": metadata, "spec": more})

        async def has(namespace: str, count: int) -> None:
            async with asyncio.timeout(120):
                while len(lister.list(namespace)) < count:
                    await asyncio.sleep(0.01)

        for namespace in ("greedy", "later"):
            await client.of("", "v1", "namespaces").create({"metadata": {"name": namespace}})
        await make("apps", "replicasets", "greedy", replicas=700, **spec)
        await has("greedy", 500)
        once = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
        await make("batch", "jobs", "greedy", parallelism=5, template=once)
        parallel = {"replicas": 5, "serviceName": "s", "podManagementPolicy": "Parallel"}
        await make("apps", "statefulsets", "greedy", **parallel, **spec)
        await make("apps", "replicasets", "later", replicas=500, **spec)
        await has("later", 500)
        assert len(lister.list("greedy")) == 500
