"""Stateful sets on a real server, with simulated nodes that run their pods."""

from __future__ import annotations

from typing import Any

import pytest

from ..conftest import StartWorld, World

StatefulSet = dict[str, Any]


@pytest.fixture
async def world(start_world: StartWorld) -> World:
    return await start_world("statefulset-controller", "garbage-collector-controller")


def stateful_set(replicas: int = 3, image: str = "i:1", volumes: bool = False, **spec: Any) -> StatefulSet:
    labels = {"app": "web"}
    pod: dict[str, Any] = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "c", "image": image}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if volumes:
        # No volume will ever be bound here: pods that need one stay pending.
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    made = {"replicas": replicas, "serviceName": "web", "selector": {"matchLabels": labels}, **spec}
    made["template"] = {"metadata": {"labels": labels}, "spec": pod}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": made}


async def create(world: World, **spec: Any) -> None:
    await world.of("apps", "statefulsets").create(stateful_set(**spec))


async def until(world: World, **counts: Any) -> StatefulSet:
    def fits(found: StatefulSet) -> bool:
        status = found.get("status") or {}
        observed = status.get("observedGeneration") == found["metadata"]["generation"]
        return observed and all((status.get(name) or 0) == count for name, count in counts.items())

    return await world.until_is("apps", "statefulsets", "web", fits)


async def names(world: World) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in await world.pods())


async def images(world: World) -> list[str]:
    pods = sorted(await world.pods(), key=lambda pod: str(pod["metadata"]["name"]))
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


async def set_image(world: World, image: str, **spec: Any) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    patch = {"spec": {"template": template, **spec}}
    await world.of("apps", "statefulsets").patch("default", "web", patch, "strategic")


async def test_in_order_up_and_down(world: World) -> None:
    await create(world)
    status = (await until(world, readyReplicas=3, replicas=3, availableReplicas=3))["status"]
    assert status["currentRevision"] == status["updateRevision"] and status["collisionCount"] == 0
    pods = sorted(await world.pods(), key=lambda pod: str(pod["metadata"]["name"]))
    assert [pod["metadata"]["name"] for pod in pods] == ["web-0", "web-1", "web-2"]
    ready = [
        next(each["lastTransitionTime"] for each in pod["status"]["conditions"] if each["type"] == "Ready")
        for pod in pods
    ]
    assert all(pods[i + 1]["metadata"]["creationTimestamp"] >= ready[i] for i in range(2))
    labels = pods[1]["metadata"]["labels"]
    assert labels["statefulset.kubernetes.io/pod-name"] == "web-1" and labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["controller-revision-hash"] == status["updateRevision"]
    assert (pods[1]["spec"]["hostname"], pods[1]["spec"]["subdomain"]) == ("web-1", "web")
    assert await world.until_event("SuccessfulCreate") == "Create Pod web-0 in StatefulSet web successful"
    await world.of("apps", "statefulsets").patch("default", "web", {"spec": {"replicas": 1}})
    await until(world, replicas=1, readyReplicas=1)
    assert await names(world) == ["web-0"]


async def test_a_pod_that_is_not_ready_holds_up_the_next(world: World) -> None:
    made = stateful_set()
    made["spec"]["template"]["metadata"]["annotations"] = {"simulation.pilothouse.dev/unready": "true"}
    await world.of("apps", "statefulsets").create(made)
    await until(world, replicas=1)
    await world.until(lambda: _is_running(world, "web-0"))
    assert await names(world) == ["web-0"]


async def _is_running(world: World, name: str) -> bool:
    pod = await world.of("", "pods").get("default", name)
    return bool(pod["status"]["phase"] == "Running")


async def test_parallel(world: World) -> None:
    made = stateful_set(podManagementPolicy="Parallel", ordinals={"start": 5})
    made["spec"]["template"]["metadata"]["annotations"] = {"simulation.pilothouse.dev/unready": "true"}
    await world.of("apps", "statefulsets").create(made)
    await until(world, replicas=3)
    assert await names(world) == ["web-5", "web-6", "web-7"]


async def test_more_than_anybody_can_make(world: World) -> None:
    await create(world, replicas=2_000_000_000)
    await world.until_is("apps", "statefulsets", "web", lambda found: found["status"].get("readyReplicas", 0) >= 2)
    await world.of("apps", "statefulsets").patch("default", "web", {"spec": {"replicas": 1}})
    await until(world, replicas=1, readyReplicas=1)
    assert await names(world) == ["web-0"]


async def test_rolling_update_and_back(world: World) -> None:
    await create(world)
    first = (await until(world, readyReplicas=3))["status"]["updateRevision"]
    await set_image(world, "i:2")
    status = (await until(world, readyReplicas=3, updatedReplicas=3, currentReplicas=3))["status"]
    assert status["currentRevision"] == status["updateRevision"] != first
    assert await images(world) == ["i:2"] * 3
    await set_image(world, "i:1")
    status = (await until(world, readyReplicas=3, updatedReplicas=3, currentReplicas=3))["status"]
    assert status["updateRevision"] == first
    revisions = await world.list("apps", "controllerrevisions")
    assert {each["metadata"]["name"]: each["revision"] for each in revisions}[first] == 3 and len(revisions) == 2


async def test_partition(world: World) -> None:
    await create(world, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    await until(world, readyReplicas=3, updatedReplicas=3)
    await set_image(world, "i:2")
    await until(world, readyReplicas=3, updatedReplicas=1, currentReplicas=2)
    assert await images(world) == ["i:1", "i:1", "i:2"]
    # A pod below the partition comes back as it was.
    uid = (await world.of("", "pods").get("default", "web-0"))["metadata"]["uid"]
    await world.of("", "pods").delete("default", "web-0", grace_seconds=0)
    await world.until_gone_uid("web-0", uid)

    async def is_back() -> bool:
        return len(await world.pods()) == 3

    await world.until(is_back)
    assert await images(world) == ["i:1", "i:1", "i:2"]


async def test_on_delete(world: World) -> None:
    await create(world, replicas=2, updateStrategy={"type": "OnDelete"})
    await until(world, readyReplicas=2)
    await set_image(world, "i:2")
    await until(world, readyReplicas=2, updatedReplicas=0)
    await world.of("", "pods").delete("default", "web-1")
    await until(world, readyReplicas=2, updatedReplicas=1)
    assert await images(world) == ["i:1", "i:2"]


async def test_an_ended_pod_is_replaced(world: World) -> None:
    await create(world, replicas=1)
    await until(world, readyReplicas=1)
    uid = (await world.pods())[0]["metadata"]["uid"]
    await world.of("", "pods").patch("default", "web-0", {"status": {"phase": "Failed"}}, subresource="status")
    await world.until_gone_uid("web-0", uid)
    await until(world, readyReplicas=1)


async def test_claims_and_their_owners(world: World) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    await create(
        world,
        replicas=2,
        volumes=True,
        podManagementPolicy="Parallel",
        persistentVolumeClaimRetentionPolicy=policy,
    )
    await until(world, replicas=2)

    async def owners() -> dict[str, list[str]] | None:
        claims = await world.list("", "persistentvolumeclaims")
        found = {
            claim["metadata"]["name"]: [each["kind"] for each in claim["metadata"].get("ownerReferences") or ()]
            for claim in claims
        }
        return found if all(found.values()) else None

    assert await world.until(owners) == {"data-web-0": ["StatefulSet"], "data-web-1": ["StatefulSet"]}
    pod = await world.of("", "pods").get("default", "web-1")
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-web-1"
    claims = await world.list("", "persistentvolumeclaims")
    assert claims[0]["metadata"]["labels"] == {"app": "web"}
    await world.of("apps", "statefulsets").delete("default", "web", propagation="Background")
    await world.until(lambda: _none(world, "persistentvolumeclaims"))


async def _none(world: World, resource: str) -> bool:
    # The protection of claims, which another controller would take off.
    for each in await world.list("", resource):
        if each["metadata"].get("deletionTimestamp") and each["metadata"].get("finalizers"):
            patch = {"metadata": {"finalizers": None}}
            await world.of("", resource).patch("default", each["metadata"]["name"], patch)
    return not await world.list("", resource)


async def test_history_is_limited(world: World) -> None:
    await create(world, replicas=1, revisionHistoryLimit=1)
    await until(world, readyReplicas=1)
    for number in (2, 3, 4):
        await set_image(world, f"i:{number}")
        await until(world, readyReplicas=1, updatedReplicas=1, currentReplicas=1)

    async def is_short() -> bool:
        return len(await world.list("apps", "controllerrevisions")) == 2

    await world.until(is_short)


async def test_orphans_are_adopted(world: World) -> None:
    await create(world, replicas=1)
    await until(world, readyReplicas=1)
    await world.of("apps", "statefulsets").delete("default", "web", propagation="Orphan")
    await world.until_gone("apps", "statefulsets", "web")
    await create(world, replicas=1)
    status = (await until(world, readyReplicas=1))["status"]
    (pod,) = await world.pods()
    assert pod["metadata"]["ownerReferences"][0]["uid"]
    assert pod["metadata"]["labels"]["controller-revision-hash"] == status["updateRevision"]
