"""A living cluster that is stopped in the middle of much work: quickly, leases free, nothing lost that was answered."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pilothouse.controllers.runtime.client import LoopbackClients, ResourceClient
from pilothouse.testing.in_process import InProcessServer

NODES, PODS = 40, 80
LEASES = ("kube-controller-manager", "kube-scheduler")


def client_of(server: InProcessServer, group: str, resource: str) -> ResourceClient:
    return LoopbackClients(server.process.cluster.handler).api_server().of(group, "v1", resource)


async def holders(server: InProcessServer) -> list[str]:
    leases = client_of(server, "coordination.k8s.io", "leases")
    found = {each["metadata"]["name"]: each async for each in leases.items("kube-system")}
    return [found[name]["spec"].get("holderIdentity") or "" for name in LEASES if name in found]


async def test_stopping_in_the_middle_of_much_work(tmp_path: Path) -> None:
    async with InProcessServer(f"--simulate-nodes={NODES}", data_dir=tmp_path, living=True) as server:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": "web", "namespace": "default"}
        await client_of(server, "apps", "deployments").create({"metadata": metadata, "spec": spec})
        pods, answered = client_of(server, "", "pods"), set[str]()
        async with asyncio.timeout(120):
            while len(answered) < PODS // 2:  # many more, and all their events, are under way
                answered = {each["metadata"]["uid"] async for each in pods.items("default")}
                await asyncio.sleep(0.02)
        assert all(await holders(server))
    async with InProcessServer("--controllers=-*", "--scheduler=false", data_dir=tmp_path) as server:
        there = {each["metadata"]["uid"] async for each in client_of(server, "", "pods").items("default")}
        assert answered <= there
        assert await holders(server) == ["", ""]
    ours = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not ours, [task.get_name() for task in ours]
