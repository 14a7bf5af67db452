from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.resource_claims import claim_names, generate_name, is_done
from pilothouse.simulation.nodes.pool import NodePool, PoolSettings
from pilothouse.simulation.nodes.streams import SimulatedStreams
from pilothouse.simulation.nodes.template import read_template
from pilothouse.simulation.scheduler.scheduler import Scheduler
from pilothouse.testing.running_controllers import RunningControllers


@pytest.mark.parametrize(
    ("pod", "claim", "name"),
    [("p", "c", "p-c-"), ("p" * 60, "c", "p" * 54 + "-"), ("p" * 50, "c" * 50, "p" * 27 + "-" + "c" * 27)],
)
def test_generated_names(pod: str, claim: str, name: str) -> None:
    assert generate_name(pod, claim) == name


def test_the_claim_of_an_entry() -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    assert claim_names({})({"name": "gpu", "resourceClaimName": "c"}) == "c"
    assert claim_names({})(entry) is None
    assert claim_names({"status": {"resourceClaimStatuses": [{"name": "gpu"}]}})(entry) == ""
    named = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "x"}]}}
    assert claim_names(named)(entry) == "x"


def test_when_pods_are_done() -> None:
    assert is_done({"metadata": {}, "spec": {}, "status": {"phase": "Failed"}})
    assert is_done({"metadata": {"deletionTimestamp": "x"}, "spec": {}})
    assert not is_done({"metadata": {"deletionTimestamp": "x"}, "spec": {"nodeName": "n"}})


def spec() -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}
    return {"devices": {"requests": [{"name": "one", "exactly": exactly}]}}


async def test_from_the_template_to_the_end() -> None:
    async with RunningControllers("resource_claims") as cluster:
        pods, claims = cluster.of("", "v1", "pods"), cluster.of("resource.k8s.io", "v1", "resourceclaims")
        entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
        container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
        metadata = {"name": "p", "namespace": "default"}
        wanted = {"containers": [container], "resourceClaims": [entry], "nodeName": "n"}
        await pods.create({"metadata": metadata, "spec": wanted})
        event = await cluster.wait_event("default", "FailedResourceClaimCreation", "p")
        assert event["message"] == (
            'PodResourceClaim gpu: resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
        )
        template = {"metadata": {"labels": {"a": "b"}}, "spec": spec()}
        await cluster.of("resource.k8s.io", "v1", "resourceclaimtemplates").create(
            {"metadata": {"name": "t", "namespace": "default"}, "spec": template}
        )
        pod = await cluster.wait(pods, "default", "p", lambda obj: obj["status"].get("resourceClaimStatuses"))
        name = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        assert name.startswith("p-gpu-")
        claim = await claims.get("default", name)
        assert claim["metadata"]["labels"] == {"a": "b"}
        assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}

        finalizers = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        await claims.patch("default", name, finalizers)
        result = {"request": "one", "driver": "d.example.com", "pool": "x", "device": "y"}
        allocation = {"allocation": {"devices": {"results": [result]}}}
        await claims.patch("default", name, {"status": allocation}, subresource="status")
        reserved = await cluster.wait(claims, "default", name, lambda obj: obj["status"].get("reservedFor"))
        uid = pod["metadata"]["uid"]
        assert reserved["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": uid}]

        await pods.patch("default", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
        await cluster.wait_gone(claims, "default", name)


_GROUPS = (
    "--disable-admission-plugins=ServiceAccount",
    "--authorization-mode=Node,RBAC",
    "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true",
    "--runtime-config=scheduling.k8s.io/v1beta1=true",
)


async def test_the_pods_of_a_group_share_its_claim() -> None:
    """One device is enough for both pods; it is free again when the group has gone, not when its pods have."""
    async with RunningControllers("resource_claims", "garbage_collector", flags=_GROUPS) as cluster:
        slices = {"kind": "ResourceSlice", "spec": {"driver": "gpu.example.com", "devices": [{"name": "gpu-0"}]}}
        settings = PoolSettings(1, template=read_template([{"kind": "Node"}, slices]))
        streams = SimulatedStreams()
        await NodePool(settings, cluster.clients, cluster.informers, cluster.supervisor, streams).start()
        await cluster.of("", "v1", "nodes").patch("", "node-1", {"spec": {"taints": None}})
        Scheduler(cluster.clients.scheduler(), cluster.informers, cluster.supervisor).start()

        pods, claims = cluster.of("", "v1", "pods"), cluster.of("resource.k8s.io", "v1", "resourceclaims")
        groups = cluster.of("scheduling.k8s.io", "v1beta1", "podgroups")
        await cluster.of("resource.k8s.io", "v1", "deviceclasses").create(
            {"metadata": {"name": "gpu.example.com"}, "spec": {}}
        )
        await cluster.of("resource.k8s.io", "v1", "resourceclaimtemplates").create(
            {"metadata": {"name": "t", "namespace": "default"}, "spec": {"spec": spec()}}
        )
        entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
        group = await groups.create(
            {
                "metadata": {"name": "g", "namespace": "default"},
                "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": [entry]},
            }
        )
        container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
        wanted = {
            "containers": [container],
            "resourceClaims": [entry],
            "schedulingGroup": {"podGroupName": "g"},
            "terminationGracePeriodSeconds": 0,
        }
        for name in ("a", "b"):
            await pods.create({"metadata": {"name": name, "namespace": "default"}, "spec": wanted})
        for name in ("a", "b"):
            await cluster.wait(pods, "default", name, lambda obj: obj["status"].get("phase") == "Running")
        [claim] = (await claims.list("default"))["items"]
        assert claim["metadata"]["name"].startswith("g-gpu-")
        told = (await groups.get("default", "g"))["status"]["resourceClaimStatuses"]
        assert told == [{"name": "gpu", "resourceClaimName": claim["metadata"]["name"]}]
        assert claim["status"]["reservedFor"] == [
            {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": group["metadata"]["uid"]}
        ]
        for name in ("a", "b"):
            await pods.delete("default", name)
            await cluster.wait_gone(pods, "default", name)
        assert (await claims.get("default", claim["metadata"]["name"]))["status"]["allocation"]
        await groups.patch("default", "g", {"metadata": {"finalizers": None}})
        await groups.delete("default", "g")
        await cluster.wait_gone(claims, "default", claim["metadata"]["name"])


def test_the_names_of_thousands_of_claims_are_read_once() -> None:
    class Counted(list[Any]):
        looks = 0

        def __iter__(self) -> Any:
            Counted.looks += 1
            return super().__iter__()

    entries = [{"name": f"x{number}", "resourceClaimTemplateName": "t"} for number in range(100)]
    statuses = Counted({"name": each["name"], "resourceClaimName": f"c-{each['name']}"} for each in entries)
    names = list(map(claim_names({"status": {"resourceClaimStatuses": statuses}}), entries))
    assert (names[0], names[99], Counted.looks) == ("c-x0", "c-x99", 1)
