"""Other controllers, and the scheduler, under the faults that workloads stand: nothing too much, nothing left."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.simulation.nodes.template import read_template

from .conftest import Faults, StartWorld
from .ordeal import Ordeal

CHANCE = 0.3


async def begin(start_world: StartWorld, seed: int, *rows: str, **more: Any) -> Ordeal:
    rng = random.Random(seed)
    faults = Faults(rng, CHANCE)
    return Ordeal(await start_world(*rows, faults=faults, **more), faults, rng)


def deployment(name: str, replicas: int) -> Object:
    labels = {"app": name}
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    rolling = {"maxSurge": 1, "maxUnavailable": 1}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, "strategy": strategy}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_roll_out_stays_within_its_bounds_and_leaves_nothing(start_world: StartWorld) -> None:
    """Also: endpoints follow, a budget counts, and a foreground deletion takes everything along."""
    rows = (
        "deployment-controller",
        "replicaset-controller",
        "garbage-collector-controller",
        "endpointslice-controller",
        "endpoints-controller",
        "disruption-controller",
    )
    ordeal = await begin(start_world, 1, *rows)
    world = ordeal.world

    def within_bounds(sets: list[Object]) -> None:
        asked = sum(each["spec"]["replicas"] for each in sets)
        assert asked <= 4 + 1, [(each["metadata"]["name"], each["spec"]["replicas"]) for each in sets]

    ordeal.watch(within_bounds, "apps", "replicasets")
    deployments = world.of("apps", "deployments")
    await deployments.create(deployment("d", 4))
    ports = [{"port": 80}]
    metadata = {"name": "d", "namespace": "default"}
    await world.of("", "services").create({"metadata": metadata, "spec": {"selector": {"app": "d"}, "ports": ports}})
    budget = {"selector": {"matchLabels": {"app": "d"}}, "minAvailable": 3}
    await world.of("policy", "poddisruptionbudgets").create({"metadata": metadata, "spec": budget})
    await ordeal.trouble(2)
    ordeal.faults.chance = CHANCE
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}
    await deployments.patch("default", "d", patch, "strategic")
    await ordeal.trouble(3)

    async def is_rolled_out() -> bool:
        found = await deployments.get("default", "d")
        status = found.get("status") or {}
        counts = [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return counts == [4] * 3 and status["observedGeneration"] == found["metadata"]["generation"]

    await ordeal.until(is_rolled_out)
    assert len(await world.list("apps", "replicasets")) == 2

    async def has_all_endpoints() -> bool:
        addresses = {pod["status"].get("podIP") for pod in await world.pods()}
        slices = await world.list("discovery.k8s.io", "endpointslices", "kubernetes.io/service-name=d")
        listed = [each["addresses"][0] for part in slices for each in part.get("endpoints") or ()]
        subsets = (await world.of("", "endpoints").get("default", "d")).get("subsets") or ()
        plain = [each["ip"] for subset in subsets for each in subset.get("addresses") or ()]
        return sorted(listed) == sorted(plain) == sorted(addresses)

    async def has_budget() -> bool:
        status = (await world.of("policy", "poddisruptionbudgets").get("default", "d")).get("status") or {}
        names = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        return [status.get(name) for name in names] == [4, 4, 3, 1]

    await world.until(has_all_endpoints)
    await world.until(has_budget)
    ordeal.faults.chance = CHANCE
    await deployments.delete("default", "d", propagation="Foreground")
    await ordeal.trouble(2)
    await world.until_gone("apps", "deployments", "d")
    assert not await world.list("apps", "replicasets") and not await world.pods()


async def test_a_namespace_goes_with_all_that_is_in_it(start_world: StartWorld) -> None:
    rows = ("namespace-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller")
    ordeal = await begin(start_world, 2, *rows, nodes=0)
    world = ordeal.world
    await world.of("", "namespaces").create({"metadata": {"name": "gone"}})
    for number in range(20):
        metadata = {"name": f"m-{number}", "namespace": "gone"}
        await world.of("", "configmaps").create({"metadata": metadata})
    await world.of("", "namespaces").delete("", "gone")
    await ordeal.trouble(3)

    async def is_gone() -> bool:
        try:
            await world.of("", "namespaces").get("", "gone")
        except errors.NotFound:
            return True
        return False

    await ordeal.until(is_gone)
    for resource in ("configmaps", "serviceaccounts"):
        assert not (await world.of("", resource).list("gone"))["items"]


async def test_cron_jobs_never_overlap_where_that_is_forbidden(start_world: StartWorld) -> None:
    rows = ("cronjob-controller", "job-controller", "garbage-collector-controller", "ttl-after-finished-controller")
    ordeal = await begin(start_world, 3, *rows)
    world = ordeal.world

    def one_of_a_time(jobs: list[Object]) -> None:
        times = Counter(
            each["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] for each in jobs
        )
        assert not times or max(times.values()) == 1, times

    ordeal.watch(one_of_a_time, "batch", "jobs")
    container = {"name": "c", "image": "i", "command": ["true"]}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    job = {"spec": {"template": template, "ttlSecondsAfterFinished": 0}}
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": job, "startingDeadlineSeconds": 3600}
    created = {"metadata": {"name": "c", "namespace": "default"}, "spec": {**spec, "suspend": True}}
    crons = world.of("batch", "cronjobs")
    made = await crons.create(created)
    made["status"] = {"lastScheduleTime": "2020-01-01T00:00:00Z"}
    await crons.update_status(made)
    await crons.patch("default", "c", {"spec": {"suspend": False}})
    await ordeal.trouble(3)

    async def has_run() -> bool:
        status = (await crons.get("default", "c")).get("status") or {}
        return bool(status.get("lastSuccessfulTime")) and not status.get("active")

    await ordeal.until(has_run)
    await crons.patch("default", "c", {"spec": {"suspend": True}})

    async def is_tidy() -> bool:
        return not await world.list("batch", "jobs") and not await world.pods()

    await world.until(is_tidy)


@pytest.mark.parametrize("by_name", [False, True], ids=["claims", "extended resources"])
async def test_no_device_is_given_twice_and_no_node_gets_too_much(start_world: StartWorld, by_name: bool) -> None:
    """The scheduler itself is killed and fails here, in the middle of what it writes."""
    devices = [{"name": f"gpu-{number}"} for number in range(2)]
    slices = {"kind": "ResourceSlice", "spec": {"driver": "gpu.example.com", "devices": devices}}
    node = {"kind": "Node", "status": {"capacity": {"cpu": "2"}}}
    template = read_template([node, slices])
    rows = ("resourceclaim-controller", "garbage-collector-controller")
    ordeal = await begin(start_world, 4, *rows, template=template, schedules=True)
    world = ordeal.world

    def each_device_once(claims: list[Object]) -> None:
        used = Counter(
            (result["pool"], result["device"])
            for claim in claims
            for result in ((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", ())
        )
        assert not used or max(used.values()) == 1, used

    def no_node_overcommitted(pods: list[Object]) -> None:
        phases = ("Succeeded", "Failed")
        placed = Counter(
            pod["spec"]["nodeName"]
            for pod in pods
            if pod["spec"].get("nodeName") and pod["status"].get("phase") not in phases
        )
        assert not placed or max(placed.values()) <= 2, placed

    ordeal.watch(each_device_once, "resource.k8s.io", "resourceclaims")
    ordeal.watch(no_node_overcommitted)
    device_class = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    await world.of("resource.k8s.io", "deviceclasses").create(device_class)
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
    claim_template = {
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    await world.of("resource.k8s.io", "resourceclaimtemplates").create(claim_template)
    amounts = {"cpu": "1", **({"example.com/gpu": "1"} if by_name else {})}
    container = {"name": "c", "image": "i", "resources": {"requests": amounts, "limits": amounts}}
    for number in range(6):
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        if not by_name:
            spec["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": "t"}]
        await world.of("", "pods").create({"metadata": {"name": f"p{number}", "namespace": "default"}, "spec": spec})
    await ordeal.trouble(4)

    async def are_four_running() -> list[str]:
        running = [pod["metadata"]["name"] for pod in await world.pods() if pod["status"].get("phase") == "Running"]
        return running if len(running) == 4 else []

    running = await world.until(are_four_running)
    for pod in await world.pods():
        if pod["metadata"]["name"] in running:
            assert ("extendedResourceClaimStatus" in pod["status"]) == by_name
    ordeal.faults.chance = CHANCE
    for name in running[:2]:
        await world.of("", "pods").delete("default", name)
    await ordeal.trouble(2)
    await ordeal.until(are_four_running)
    for pod in await world.pods():
        await world.of("", "pods").delete("default", pod["metadata"]["name"])

    async def has_no_claims() -> bool:
        return not await world.list("resource.k8s.io", "resourceclaims")

    await world.until(has_no_claims)
