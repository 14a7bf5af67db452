"""Controllers whose calls fail at random, and that are killed at any moment, come to the same end as all others.

Each story is told while calls fail; then they succeed again, and what is there must become what it should be, with
nothing made twice and nothing left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest

from pilothouse.machinery.objects import Object
from pilothouse.testing.faults import Faults
from pilothouse.testing.running_controllers import RunningControllers

Condition = Callable[[], Awaitable[bool]]
Tell = Callable[[RunningControllers], Awaitable[Condition]]
_IMPATIENT = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 0,
}


def named(name: str, **more: Any) -> Object:
    return {"name": name, "namespace": "default", **more}


async def make_pod(cluster: RunningControllers, name: str, address: str = "", **spec: Any) -> Object:
    wanted = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 0, **spec}
    pods = cluster.of("", "v1", "pods")
    made = await pods.create({"metadata": named(name, labels={"app": "web"}), "spec": wanted})
    if address:
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        made = await pods.patch("default", name, {"status": status}, "strategic", subresource="status")
    return made


async def items(cluster: RunningControllers, group: str, resource: str, namespace: str = "default") -> list[Object]:
    found: list[Object] = (await cluster.of(group, "v1", resource).list(namespace))["items"]
    return found


async def endpoints(cluster: RunningControllers) -> Condition:
    """Every ready pod is in one slice, once, and in the Endpoints."""
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    await cluster.of("", "v1", "services").create({"metadata": named("web"), "spec": spec})
    for number in range(1, 9):
        await make_pod(cluster, f"p{number}", f"10.0.0.{number}", nodeName="n")
        await asyncio.sleep(0.02)
    for number in (2, 5):
        await cluster.of("", "v1", "pods").delete("default", f"p{number}")
    wanted = sorted(f"10.0.0.{number}" for number in (1, 3, 4, 6, 7, 8))

    async def holds() -> bool:
        slices = await items(cluster, "discovery.k8s.io", "endpointslices")
        listed = sorted(
            each["addresses"][0]
            for part in slices
            for each in part.get("endpoints") or ()
            if part["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
        )
        found = await items(cluster, "", "endpoints")
        legacy = sorted(
            each["ip"]
            for one in found
            if one["metadata"]["name"] == "web"
            for part in one.get("subsets") or ()
            for each in part.get("addresses") or ()
        )
        return listed == legacy == wanted

    return holds


async def budgets(cluster: RunningControllers) -> Condition:
    """A budget counts the pods that are there."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await cluster.of("policy", "v1", "poddisruptionbudgets").create({"metadata": named("b"), "spec": spec})
    for number in range(1, 5):
        await make_pod(cluster, f"p{number}", f"10.0.0.{number}", nodeName="n")
    await cluster.of("", "v1", "pods").delete("default", "p1")

    async def holds() -> bool:
        [budget] = await items(cluster, "policy", "poddisruptionbudgets")
        status = budget.get("status") or {}
        return (status.get("currentHealthy"), status.get("disruptionsAllowed")) == (3, 2)

    return holds


async def accounts(cluster: RunningControllers) -> Condition:
    """Each namespace has its account, also where somebody deletes it."""
    for name in ("a", "b"):
        await cluster.of("", "v1", "namespaces").create({"metadata": {"name": name}})
    await cluster.wait(cluster.of("", "v1", "serviceaccounts"), "a", "default")
    await cluster.of("", "v1", "serviceaccounts").delete("a", "default")

    async def holds() -> bool:
        made = [await items(cluster, "", "serviceaccounts", name) for name in ("a", "b")]
        return all([each["metadata"]["name"] for each in found] == ["default"] for found in made)

    return holds


async def lost_nodes(cluster: RunningControllers) -> Condition:
    """A node that is not ready is tainted and loses its pods."""
    nodes = cluster.of("", "v1", "nodes")
    for name, status in (("well", "True"), ("ill", "False")):
        await nodes.create({"metadata": {"name": name}})
        change = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        await nodes.patch("", name, change, "strategic", subresource="status")
        await make_pod(cluster, f"on-{name}", nodeName=name, tolerations=[_IMPATIENT])

    async def holds() -> bool:
        taints = {each["metadata"]["name"]: each["spec"].get("taints") or [] for each in (await nodes.list())["items"]}
        names = {each["metadata"]["name"] for each in await items(cluster, "", "pods")}
        effects = {(each["key"], each["effect"]) for each in taints["ill"]}
        expected = {("node.kubernetes.io/not-ready", effect) for effect in ("NoSchedule", "NoExecute")}
        return effects == expected and not taints["well"] and names == {"on-well"}

    return holds


async def ephemeral_volumes(cluster: RunningControllers) -> Condition:
    """Each pod with an ephemeral volume has one claim."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    for number in range(5):
        await make_pod(cluster, f"p{number}", volumes=[volume])

    async def holds() -> bool:
        claims = await items(cluster, "", "persistentvolumeclaims")
        return sorted(each["metadata"]["name"] for each in claims) == [f"p{number}-v" for number in range(5)]

    return holds


async def aggregated_roles(cluster: RunningControllers) -> Condition:
    """A role has the rules of all roles that it collects."""
    roles = cluster.of("rbac.authorization.k8s.io", "v1", "clusterroles")
    rule = {"clusterRoleSelectors": [{"matchLabels": {"part-of": "all"}}]}
    await roles.create({"metadata": {"name": "all"}, "aggregationRule": rule, "rules": []})
    for name in ("pods", "secrets", "nodes"):
        rules = [{"apiGroups": [""], "resources": [name], "verbs": ["get"]}]
        await roles.create({"metadata": {"name": f"see-{name}", "labels": {"part-of": "all"}}, "rules": rules})
    await roles.delete("", "see-nodes")

    async def holds() -> bool:
        found = (await roles.get("", "all")).get("rules") or []
        return sorted(each["resources"][0] for each in found) == ["pods", "secrets"]

    return holds


async def finished_jobs(cluster: RunningControllers) -> Condition:
    """Jobs that have ended go when their time is over, others stay."""
    jobs = cluster.of("batch", "v1", "jobs")
    container = {"name": "c", "image": "i"}
    for name in ("over", "under-way"):
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        await jobs.create({"metadata": named(name), "spec": {"template": template, "ttlSecondsAfterFinished": 0}})
    at = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": type, "status": "True", "lastTransitionTime": at, "lastProbeTime": at}
        for type in ("FailureTarget", "Failed")
    ]
    status = {"conditions": conditions, "startTime": at}
    await jobs.patch("default", "over", {"status": status}, subresource="status")

    async def holds() -> bool:
        return [each["metadata"]["name"] for each in await items(cluster, "batch", "jobs")] == ["under-way"]

    return holds


STORIES: dict[str, tuple[tuple[str, ...], Tell]] = {
    "endpoints": (("endpoints.slices", "endpoints.legacy"), endpoints),
    "budgets": (("disruption_budgets",), budgets),
    "accounts": (("service_accounts",), accounts),
    "lost nodes": (("node_lifecycle", "taint_eviction"), lost_nodes),
    "ephemeral volumes": (("volumes.ephemeral",), ephemeral_volumes),
    "aggregated roles": (("cluster_roles",), aggregated_roles),
    "finished jobs": (("ttl_after_finished", "garbage_collector"), finished_jobs),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("story", STORIES)
async def test_all_comes_right(story: str, seed: int) -> None:
    modules, tell = STORIES[story]
    rng, faults = Random(seed), Faults(seed)
    async with RunningControllers(*modules, faults=faults) as cluster:
        holds = await tell(cluster)
        for _ in range(3):
            await asyncio.sleep(rng.random() * 0.1)
            await cluster.restart()
        faults.chance = 0.0
        async with asyncio.timeout(120):
            while not await holds():
                await asyncio.sleep(0.02)
        assert faults.count > 0
