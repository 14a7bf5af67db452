"""Pods go when their devices are tainted, and rules tell how far that is."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.device_taints.rules import condition
from pilothouse.testing.running_controllers import RunningControllers

RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}
RULE = {"metadata": {"uid": "u", "generation": 1}, "spec": {"taint": {"key": "k", "effect": "NoExecute"}}}


def pods_in(*namespaces: str) -> list[dict[str, Any]]:
    return [{"metadata": {"namespace": each}} for each in namespaces]


@pytest.mark.parametrize(
    ("effect", "waiting", "evicted", "expected"),
    [
        ("NoExecute", [], 0, ("False", "NotStarted", "")),
        ("NoExecute", ["a"], 0, ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")),
        (
            "NoExecute",
            ["a", "b"],
            1,
            (
                "True",
                "PodsPendingEviction",
                "2 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
            ),
        ),
        ("NoExecute", [], 2, ("False", "Completed", "2 pods evicted since starting the controller.")),
        ("NoSchedule", [], 0, ("False", "OtherEffect", "Eviction only happens for the NoExecute effect.")),
        (
            "None",
            ["a"],
            0,
            (
                "False",
                "NoEffect",
                "1 published device selected. 2 allocated devices selected. 1 pod would be evicted in 1 namespace if "
                "the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to "
                "trigger an update.",
            ),
        ),
    ],
)
def test_conditions(effect: str, waiting: list[str], evicted: int, expected: tuple[str, str, str]) -> None:
    rule = {**RULE, "spec": {"taint": {"key": "k", "effect": effect}}}
    found = condition(rule, pods_in(*waiting), evicted, 1, 2)
    assert (found["status"], found["reason"], found["message"]) == expected


async def make(cluster: RunningControllers, name: str, **result: Any) -> None:
    """A pod on a node with a claim that has the device."""
    claims, pods = cluster.of("resource.k8s.io", "v1", "resourceclaims"), cluster.of("", "v1", "pods")
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    metadata = {"name": name, "namespace": "default"}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    claim = await claims.create({"metadata": metadata, "spec": spec})
    container = {"name": "c", "image": "i"}
    entries = [{"name": "c", "resourceClaimName": name}]
    wanted = {"containers": [container], "nodeName": "n", "resourceClaims": entries}
    pod = await pods.create({"metadata": metadata, "spec": wanted})
    consumer = {"resource": "pods", "name": name, "uid": pod["metadata"]["uid"]}
    allocation = {"devices": {"results": [{**RESULT, **result}]}}
    claim["status"] = {"allocation": allocation, "reservedFor": [consumer]}
    await claims.update_status(claim)


async def test_a_rule_evicts_and_tells() -> None:
    async with RunningControllers("device_taints") as cluster:
        pods, rules = cluster.of("", "v1", "pods"), cluster.of("resource.k8s.io", "v1", "devicetaintrules")
        toleration = {"key": "broken", "operator": "Exists", "effect": "NoExecute"}
        await make(cluster, "victim")
        await make(cluster, "tolerant", tolerations=[toleration])
        await make(cluster, "elsewhere", device="gpu-1")
        selector = {"driver": "gpu.example.com", "device": "gpu-0"}
        taint = {"key": "broken", "value": "yes", "effect": "NoExecute"}
        await rules.create({"metadata": {"name": "t"}, "spec": {"deviceSelector": selector, "taint": taint}})
        going = await cluster.wait(pods, "default", "victim", lambda obj: obj["metadata"].get("deletionTimestamp"))
        [target] = [each for each in going["status"]["conditions"] if each["type"] == "DisruptionTarget"]
        assert (target["reason"], target["message"]) == (
            "DeletionByDeviceTaintManager",
            "Device Taint manager: deleting due to NoExecute taint",
        )
        event = await cluster.wait_event("default", "DeviceTaintManagerEviction", "victim")
        assert event["message"] == "Marking for deletion"
        await cluster.wait(rules, "", "t", lambda obj: obj.get("status"))
        for name in ("tolerant", "elsewhere"):
            assert "deletionTimestamp" not in (await pods.get("default", name))["metadata"]


async def test_a_taint_in_a_slice_evicts_in_time() -> None:
    async with RunningControllers("device_taints") as cluster:
        pods, slices = cluster.of("", "v1", "pods"), cluster.of("resource.k8s.io", "v1", "resourceslices")
        patient = {"key": "broken", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3600}
        await make(cluster, "patient", tolerations=[patient])
        await make(cluster, "victim")
        device = {"name": "gpu-0", "taints": [{"key": "broken", "effect": "NoExecute"}]}
        pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.example.com", "nodeName": "n", "pool": pool, "devices": [device]}
        made = await slices.create({"metadata": {"name": "s"}, "spec": spec})
        await cluster.wait(pods, "default", "victim", lambda obj: obj["metadata"].get("deletionTimestamp"))
        assert "deletionTimestamp" not in (await pods.get("default", "patient"))["metadata"]
        made["spec"]["devices"] = [{"name": "gpu-0"}]
        await slices.update(made)
        event = await cluster.wait_event("default", "DeviceTaintManagerEviction", "patient")
        assert event["message"] == "Cancelling deletion"


async def test_a_pod_group_stays_while_it_has_pods() -> None:
    flags = (
        "--disable-admission-plugins=ServiceAccount",
        "--authorization-mode=Node,RBAC",
        "--feature-gates=GenericWorkload=true",
        "--runtime-config=scheduling.k8s.io/v1beta1=true",
    )
    async with RunningControllers("pod_group_protection", flags=flags) as cluster:
        groups, pods = cluster.of("scheduling.k8s.io", "v1beta1", "podgroups"), cluster.of("", "v1", "pods")
        metadata = {"name": "g", "namespace": "default"}
        await groups.create({"metadata": metadata, "spec": {"schedulingPolicy": {"basic": {}}}})
        spec = {"containers": [{"name": "c", "image": "i"}], "schedulingGroup": {"podGroupName": "g"}}
        await pods.create({"metadata": {"name": "p", "namespace": "default"}, "spec": spec})
        await groups.delete("default", "g")
        assert (await groups.get("default", "g"))["metadata"]["finalizers"]
        await pods.delete("default", "p", grace_seconds=0)
        await cluster.wait_gone(groups, "default", "g")
