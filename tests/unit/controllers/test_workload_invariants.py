"""Controllers of workloads under random faults: calls refused, collided or answered into the void, and controllers
killed at any moment. Whatever happens, there are never more pods than allowed, nothing is left over, and in the end all
is as it should be.

Each example is one server; what happens in it is drawn from a seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

from .conftest import Faults, StartWorld, World
from .ordeal import Ordeal

SEEDS = (1, 2)
CHANCE = 0.3
ROWS = (
    "job-controller",
    "statefulset-controller",
    "daemonset-controller",
    "replicaset-controller",
    "garbage-collector-controller",
)


@pytest.fixture
def start_ordeal(start_world: StartWorld) -> Callable[[int], Awaitable[Ordeal]]:
    async def start(seed: int) -> Ordeal:
        rng = random.Random(seed)
        faults = Faults(rng, CHANCE)
        return Ordeal(await start_world(*ROWS, faults=faults), faults, rng)

    return start


def pod_spec(command: str = "", **spec: Any) -> Object:
    container: Object = {"name": "c", "image": "i"}
    if command:
        container["command"] = ["sh", "-c", command]
    return {"terminationGracePeriodSeconds": 1, "containers": [container], **spec}


def living(pods: list[Object]) -> list[Object]:
    phases = ("Succeeded", "Failed")
    return [
        pod for pod in pods if not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in phases
    ]


@pytest.mark.parametrize("seed", SEEDS)
async def test_jobs(start_ordeal: Callable[[int], Awaitable[Ordeal]], seed: int) -> None:
    ordeal = await start_ordeal(seed)
    world = ordeal.world

    def at_most_three(pods: list[Object]) -> None:
        assert len(living(pods)) <= 3 + ordeal.faults.uncertain, [pod["metadata"]["name"] for pod in living(pods)]

    ordeal.watch(at_most_three)
    template = {"spec": pod_spec("true", restartPolicy="Never")}
    spec = {"completions": 6, "parallelism": 3, "completionMode": "Indexed", "template": template}
    await world.of("batch", "jobs").create({"metadata": {"name": "j", "namespace": "default"}, "spec": spec})
    await ordeal.trouble(4)

    async def is_complete() -> bool:
        status = (await world.of("batch", "jobs").get("default", "j")).get("status") or {}
        return any(each["type"] == "Complete" for each in status.get("conditions") or ())

    await ordeal.until(is_complete)
    status = (await world.of("batch", "jobs").get("default", "j"))["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (6, "0-5")
    assert not any((status["uncountedTerminatedPods"] or {}).values())

    async def are_released() -> bool:
        return not any(pod["metadata"].get("finalizers") for pod in await world.pods())

    await world.until(are_released)
    await world.of("batch", "jobs").delete("default", "j", propagation="Background")
    await world.until(lambda: _is_empty(world))


async def _is_empty(world: World) -> bool:
    return not await world.pods()


@pytest.mark.parametrize("seed", SEEDS)
async def test_stateful_sets(start_ordeal: Callable[[int], Awaitable[Ordeal]], seed: int) -> None:
    ordeal = await start_ordeal(seed)
    world = ordeal.world
    most = 3

    def in_order(pods: list[Object]) -> None:
        ordinals = sorted(int(pod["metadata"]["name"].rpartition("-")[2]) for pod in pods)
        assert len(ordinals) <= most and all(ordinal < most for ordinal in ordinals), ordinals

    ordeal.watch(in_order)
    labels = {"app": "s"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    spec = {"replicas": 3, "serviceName": "s", "selector": {"matchLabels": labels}, "template": template}
    sets = world.of("apps", "statefulsets")
    await sets.create({"metadata": {"name": "s", "namespace": "default"}, "spec": spec})
    await ordeal.trouble(2)
    ordeal.faults.chance = CHANCE
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
    await sets.patch("default", "s", patch, "strategic")
    await ordeal.trouble(3)

    async def is_updated() -> bool:
        found = await sets.get("default", "s")
        status = found.get("status") or {}
        counts = [status.get(name) for name in ("replicas", "readyReplicas", "updatedReplicas", "currentReplicas")]
        return counts == [3] * 4 and status["observedGeneration"] == found["metadata"]["generation"]

    await ordeal.until(is_updated)
    assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods()} == {"i:2"}
    assert len(await world.list("apps", "controllerrevisions")) == 2


@pytest.mark.parametrize("seed", SEEDS)
async def test_daemon_sets(start_ordeal: Callable[[int], Awaitable[Ordeal]], seed: int) -> None:
    ordeal = await start_ordeal(seed)
    world = ordeal.world
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    sets = world.of("apps", "daemonsets")
    await sets.create({"metadata": {"name": "d", "namespace": "default"}, "spec": spec})
    await ordeal.trouble(2)
    ordeal.faults.chance = CHANCE
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
    await sets.patch("default", "d", patch, "strategic")
    await ordeal.trouble(3)

    async def is_updated() -> bool:
        found = await sets.get("default", "d")
        status = found.get("status") or {}
        counts = [status.get(name) for name in ("numberAvailable", "updatedNumberScheduled", "desiredNumberScheduled")]
        return counts == [2] * 3 and status["observedGeneration"] == found["metadata"]["generation"]

    await ordeal.until(is_updated)

    async def is_one_on_each() -> bool:
        nodes = Counter(pod["spec"].get("nodeName") for pod in await world.pods())
        return nodes == {"node-1": 1, "node-2": 1}

    await world.until(is_one_on_each)


@pytest.mark.parametrize("seed", SEEDS)
async def test_replica_sets(start_ordeal: Callable[[int], Awaitable[Ordeal]], seed: int) -> None:
    ordeal = await start_ordeal(seed)
    world = ordeal.world
    labels = {"app": "r"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    sets = world.of("apps", "replicasets")
    spec = {"replicas": 5, "selector": {"matchLabels": labels}, "template": template}
    await sets.create({"metadata": {"name": "r", "namespace": "default"}, "spec": spec})
    await ordeal.trouble(3)
    await sets.patch("default", "r", {"spec": {"replicas": 2}})

    async def has_two() -> bool:
        status = (await sets.get("default", "r")).get("status") or {}
        return (status.get("replicas"), status.get("readyReplicas"), len(await world.pods())) == (2, 2, 2)

    await ordeal.until(has_two)
    await sets.delete("default", "r", propagation="Background")
    await world.until(lambda: _is_empty(world))
    with pytest.raises(errors.NotFound):
        await sets.get("default", "r")
