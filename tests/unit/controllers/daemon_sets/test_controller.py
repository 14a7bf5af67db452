"""Daemon sets on a real server, with simulated nodes that run their pods."""

from __future__ import annotations

from typing import Any

import pytest

from ..conftest import StartWorld, World

DaemonSet = dict[str, Any]


@pytest.fixture
async def world(start_world: StartWorld) -> World:
    return await start_world("daemonset-controller", "garbage-collector-controller")


async def create(world: World, pod: DaemonSet | None = None, **spec: Any) -> None:
    labels = {"app": "d"}
    container = {"name": "c", "image": "i:1"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **(pod or {})},
    }
    made = {"metadata": {"name": "d", "namespace": "default"}}
    made["spec"] = {"selector": {"matchLabels": labels}, "template": template, **spec}
    await world.of("apps", "daemonsets").create(made)


async def until(world: World, **counts: int) -> DaemonSet:
    def fits(found: DaemonSet) -> bool:
        status = found.get("status") or {}
        observed = status.get("observedGeneration") == found["metadata"]["generation"]
        return observed and all((status.get(name) or 0) == count for name, count in counts.items())

    return await world.until_is("apps", "daemonsets", "d", fits)


async def set_image(world: World, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
    await world.of("apps", "daemonsets").patch("default", "d", patch, "strategic")


async def test_one_pod_on_each_node(world: World) -> None:
    await create(world)
    status = (await until(world, numberReady=2, numberAvailable=2, updatedNumberScheduled=2))["status"]
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"]) == (2, 2)
    assert status["numberMisscheduled"] == 0 and "numberUnavailable" not in status
    pods = await world.pods()
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-1", "node-2"]
    (revision,) = await world.list("apps", "controllerrevisions")
    digest = revision["metadata"]["labels"]["controller-revision-hash"]
    assert {pod["metadata"]["labels"]["controller-revision-hash"] for pod in pods} == {digest}
    tolerated = {each["key"] for each in pods[0]["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in tolerated and len(tolerated) == 6


async def test_nodes_that_are_meant(world: World) -> None:
    await create(world, {"nodeSelector": {"role": "edge"}})
    await until(world, desiredNumberScheduled=0)
    nodes = world.of("", "nodes")
    await nodes.patch("", "node-2", {"metadata": {"labels": {"role": "edge"}}})
    await until(world, desiredNumberScheduled=1, numberReady=1)
    assert [pod["spec"]["nodeName"] for pod in await world.pods()] == ["node-2"]
    await nodes.patch("", "node-2", {"metadata": {"labels": {"role": None}}})
    await until(world, desiredNumberScheduled=0, numberMisscheduled=0)
    await world.until(lambda: _has(world, 0))


async def _has(world: World, count: int) -> bool:
    return len(await world.pods()) == count


async def test_taints(world: World) -> None:
    nodes = world.of("", "nodes")
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    await nodes.patch("", "node-1", {"spec": {"taints": [taint]}})
    await create(world)
    await until(world, desiredNumberScheduled=1, numberReady=1)
    # A taint that comes later does not drive the pod away unless it is to be executed.
    await nodes.patch("", "node-2", {"spec": {"taints": [taint]}})
    await until(world, desiredNumberScheduled=0, numberMisscheduled=1)
    assert len(await world.pods()) == 1
    await nodes.patch("", "node-2", {"spec": {"taints": [{**taint, "effect": "NoExecute"}]}})
    await world.until(lambda: _has(world, 0))


async def test_rolling_update_and_rollback(world: World) -> None:
    await create(world)
    await until(world, numberAvailable=2)
    await set_image(world, "i:2")
    await until(world, numberAvailable=2, updatedNumberScheduled=2)
    assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods()} == {"i:2"}
    await set_image(world, "i:1")
    await until(world, numberAvailable=2, updatedNumberScheduled=2)
    revisions = await world.list("apps", "controllerrevisions")
    assert sorted(each["revision"] for each in revisions) == [2, 3]


async def test_surge(world: World) -> None:
    await create(world, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    await until(world, numberAvailable=2)
    await set_image(world, "i:2")
    await until(world, numberAvailable=2, updatedNumberScheduled=2)
    await world.until(lambda: _has(world, 2))
    assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods()} == {"i:2"}


async def test_on_delete(world: World) -> None:
    await create(world, updateStrategy={"type": "OnDelete"})
    await until(world, numberAvailable=2)
    await set_image(world, "i:2")
    await until(world, numberAvailable=2, updatedNumberScheduled=0)
    name = (await world.pods())[0]["metadata"]["name"]
    await world.of("", "pods").delete("default", name)
    await until(world, numberAvailable=2, updatedNumberScheduled=1)


async def test_a_failed_pod_is_replaced(world: World) -> None:
    await create(world)
    await until(world, numberReady=2)
    pod = (await world.pods())[0]
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    await world.of("", "pods").patch("default", name, {"status": {"phase": "Failed"}}, subresource="status")
    await world.until_gone_uid(name, uid)
    await until(world, numberReady=2)
    assert "Found failed daemon pod" in await world.until_event("FailedDaemonPod")
