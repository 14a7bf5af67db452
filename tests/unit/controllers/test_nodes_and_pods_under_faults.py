"""Whatever fails and whenever they are killed: what keeps nodes and pods tidy does all of it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.manager.context import ManagerSettings
from pilothouse.machinery.objects import Object

from .trouble import SEEDS, TroubledControllers

TTL = "node.alpha.kubernetes.io/ttl"
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}


def named(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": "default", **more}


async def make_pod(cluster: TroubledControllers, name: str, phase: str = "", **spec: Any) -> Object:
    pods = cluster.of("", "v1", "pods")
    made = await pods.create({"metadata": named(name), "spec": {"containers": [{"name": "c", "image": "i"}], **spec}})
    if phase:
        made = await pods.patch("default", name, {"status": {"phase": phase}}, subresource="status")
    return made


@pytest.mark.parametrize("seed", SEEDS)
async def test_node_ttl(seed: int) -> None:
    """Every node is told for how long it may keep secrets, also where somebody forgets it."""
    async with TroubledControllers(seed, "node_ttl") as cluster:
        nodes = cluster.of("", "v1", "nodes")
        for number in range(8):
            await nodes.create({"metadata": {"name": f"n{number}", "annotations": {"own": "yes"}}})
        await cluster.suffer()
        for number in range(0, 8, 3):
            await nodes.patch("", f"n{number}", {"metadata": {"annotations": {TTL: None}}})

        async def are_told() -> bool:
            return all(
                each["metadata"]["annotations"] == {"own": "yes", TTL: "0"} for each in await cluster.all("", "nodes")
            )

        await cluster.survive(are_told)


@pytest.mark.parametrize("seed", SEEDS)
async def test_pod_garbage(seed: int) -> None:
    """Pods of nodes that have gone, and the oldest that have ended, go; all others stay."""
    settings = ManagerSettings(terminated_pods=2)
    async with TroubledControllers(seed, "pod_garbage", settings=settings, seconds=10.0) as cluster:
        await cluster.of("", "v1", "nodes").create({"metadata": {"name": "there"}})
        stay = {"running-0", "running-1", "waiting"}

        def only_garbage_goes(found: list[Object]) -> None:
            ended = [each for each in found if each["metadata"]["name"].startswith("ended")]
            assert stay <= {each["metadata"]["name"] for each in found}
            assert len(ended) >= 2

        for name in ("running-0", "running-1"):
            await make_pod(cluster, name, "Running", nodeName="there")
        await make_pod(cluster, "waiting")
        for number in range(6):
            await make_pod(cluster, f"ended-{number}", "Succeeded", nodeName="there")
            if number == 1:
                cluster.never(cluster.informers.of("", "v1", "pods"), only_garbage_goes)
            await make_pod(cluster, f"lost-{number}", "Running", nodeName="gone")

        async def is_tidy() -> bool:
            names = {each["metadata"]["name"] for each in await cluster.all("", "pods")}
            ended = {name for name in names if name.startswith("ended")}
            return names - ended == stay and len(ended) == 2

        await cluster.survive(is_tidy)


async def make_user(cluster: TroubledControllers, name: str, **result: Any) -> None:
    """A pod on a node with a claim that has the device."""
    claims = cluster.of("resource.k8s.io", "v1", "resourceclaims")
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    claim = await claims.create({"metadata": named(name), "spec": spec})
    entries = [{"name": "c", "resourceClaimName": name}]
    pod = await make_pod(cluster, name, nodeName="n", resourceClaims=entries, terminationGracePeriodSeconds=0)
    consumer = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    claim["status"] = {"allocation": {"devices": {"results": [{**RESULT, **result}]}}, "reservedFor": [consumer]}
    await claims.update_status(claim)


@pytest.mark.parametrize("seed", SEEDS)
async def test_device_taint_eviction(seed: int) -> None:
    """Pods with a tainted device go. Those that tolerate it, or have another device, are never even marked."""
    async with TroubledControllers(seed, "device_taints") as cluster:
        toleration = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}
        stay = {"tolerant", "elsewhere"}

        def others_are_spared(pods: list[Object]) -> None:
            for pod in pods:
                if pod["metadata"]["name"] in stay:
                    conditions = (pod.get("status") or {}).get("conditions") or ()
                    assert "deletionTimestamp" not in pod["metadata"], pod["metadata"]["name"]
                    assert all(each["type"] != "DisruptionTarget" for each in conditions), pod["metadata"]["name"]

        cluster.never(cluster.informers.of("", "v1", "pods"), others_are_spared)
        await make_user(cluster, "tolerant", tolerations=[toleration])
        await make_user(cluster, "elsewhere", device="gpu-1")
        for number in range(3):
            await make_user(cluster, f"victim-{number}")
        rules = cluster.of("resource.k8s.io", "v1", "devicetaintrules")
        selector = {"driver": "gpu.example.com", "device": "gpu-0"}
        taint = {"key": "broken", "value": "yes", "effect": "NoExecute"}
        await rules.create({"metadata": {"name": "t"}, "spec": {"deviceSelector": selector, "taint": taint}})
        await make_user(cluster, "latecomer")

        async def are_evicted() -> bool:
            there = await cluster.all("", "pods")
            names = {each["metadata"]["name"] for each in there if not each["metadata"].get("deletionTimestamp")}
            [rule] = await cluster.all("resource.k8s.io", "devicetaintrules")
            conditions = (rule.get("status") or {}).get("conditions") or ()
            return names == stay and [each["status"] for each in conditions] == ["False"]

        await cluster.survive(are_evicted)
