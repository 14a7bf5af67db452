"""Extended resources that devices stand behind: requests of containers, and the nodes that can meet them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.claims import plan_for
from pilothouse.simulation.scheduler.devices.extended import backing_class, requests_for
from pilothouse.simulation.scheduler.placement import NoFit, Placement
from pilothouse.simulation.scheduler.pod_info import PodInfo

from .conftest import Cluster

GPU = "example.com/gpu"


def container(name: str, amount: int = 0, **more: Any) -> Object:
    requests = {"cpu": "1", **({GPU: str(amount)} if amount else {})}
    return {"name": name, "image": "i", "resources": {"requests": requests}, **more}


def counts(requests: list[Object]) -> dict[str, int]:
    return {each["name"]: each["exactly"]["count"] for each in requests}


def uses(mappings: list[Object]) -> list[tuple[str, str]]:
    return [(each["containerName"], each["requestName"]) for each in mappings]


def asking(cluster: Cluster, *containers: Object, **more: Any) -> PodInfo:
    pod = cluster.pod("p", **more)
    pod.pod["spec"]["containers"] = list(containers)
    return pod


def gpu_class(cluster: Cluster, name: str = "gpu", resource: str = GPU, created: str = "2026-01-01T00:00:00Z") -> None:
    metadata = {"name": name, "creationTimestamp": created}
    cluster.put("deviceclass", {"metadata": metadata, "spec": {"extendedResourceName": resource}})


def publish(cluster: Cluster, node: str, count: int) -> None:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{number}"} for number in range(count)]
    spec = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": devices}
    cluster.put("slice", {"metadata": {"name": node}, "spec": spec})


def place(cluster: Cluster, pod: PodInfo) -> str:
    return Placement(choose=lambda nodes: nodes[0]).find(pod, cluster.view).name


def test_each_container_has_a_request_numbered_by_its_place_and_that_of_the_resource() -> None:
    spec = {"containers": [container("a", 1), container("b"), container("c", 2)]}
    requests, mappings = requests_for(spec, {GPU: "gpu"})
    assert requests[0] == {
        "name": "container-0-request-1",
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
    }
    assert counts(requests) == {"container-0-request-1": 1, "container-2-request-1": 2}
    assert mappings[1] == {"containerName": "c", "resourceName": GPU, "requestName": "container-2-request-1"}


def test_init_containers_use_what_later_containers_have() -> None:
    spec = {"initContainers": [container("init", 3)], "containers": [container("a", 2), container("b", 2)]}
    requests, mappings = requests_for(spec, {GPU: "gpu"})
    assert counts(requests) == {"container-1-request-1": 2, "container-2-request-1": 2}
    assert uses(mappings)[2:] == [("init", "container-1-request-1"), ("init", "container-2-request-1")]


def test_init_containers_share_the_largest_request_of_them() -> None:
    init = [container("one", 2), container("two", 4), container("sidecar", 1, restartPolicy="Always")]
    requests, mappings = requests_for({"initContainers": init, "containers": [container("a")]}, {GPU: "gpu"})
    # Both may use the sidecar's one; beyond that the first needs one and the second three.
    assert counts(requests) == {"container-1-request-1": 3, "container-2-request-1": 1}
    assert uses(mappings) == [
        ("sidecar", "container-2-request-1"),
        ("one", "container-2-request-1"),
        ("one", "container-1-request-1"),
        ("two", "container-2-request-1"),
        ("two", "container-1-request-1"),
    ]


def test_the_newest_class_stands_behind_a_resource(cluster: Cluster) -> None:
    gpu_class(cluster, "old", created="2025-01-01T00:00:00Z")
    gpu_class(cluster, "b-new")
    gpu_class(cluster, "a-new")
    found = backing_class(GPU, cluster.view.devices)
    assert found is not None
    assert found["metadata"]["name"] == "a-new"
    implicit = backing_class("deviceclass.resource.kubernetes.io/old", cluster.view.devices)
    assert implicit is not None
    assert implicit["metadata"]["name"] == "old"


def test_devices_are_claimed_where_no_plugin_has_the_resource(cluster: Cluster) -> None:
    gpu_class(cluster)
    cluster.node("bare")
    cluster.node("devices")
    publish(cluster, "devices", 2)
    pod = asking(cluster, container("c", 2))
    assert place(cluster, pod) == "devices"
    plan, info = plan_for(pod, cluster.view), cluster.snapshot.node("devices")
    assert info is not None
    [claim] = plan.wanted(info)
    assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    [choice] = plan.choose(info) or ()
    assert [each.device.id.device for each in choice.devices] == ["d0", "d1"]


def test_a_plugin_comes_before_devices(cluster: Cluster) -> None:
    gpu_class(cluster)
    cluster.node("plugin", allocatable={GPU: "1"})
    pod = asking(cluster, container("c", 1))
    assert place(cluster, pod) == "plugin"
    info = cluster.snapshot.node("plugin")
    assert info is not None
    assert plan_for(pod, cluster.view).wanted(info) == []
    cluster.snapshot.add_pod(asking(cluster, container("c", 1)), "plugin")
    with pytest.raises(NoFit) as refused:
        place(cluster, pod)
    assert refused.value.message() == f"0/1 nodes are available: 1 Insufficient {GPU}."


def test_too_few_devices_are_told_and_so_is_a_claim_that_was_left_over(cluster: Cluster) -> None:
    gpu_class(cluster)
    cluster.node("devices")
    publish(cluster, "devices", 1)
    pod = asking(cluster, container("c", 2))
    with pytest.raises(NoFit) as refused:
        place(cluster, pod)
    assert refused.value.message() == "0/1 nodes are available: 1 cannot allocate all claims."
    metadata = {
        "name": "x",
        "namespace": "default",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [{"uid": pod.uid, "controller": True}],
    }
    cluster.put("resourceclaim", {"metadata": metadata, "spec": {}})
    with pytest.raises(NoFit) as refused:
        place(cluster, pod)
    assert refused.value.message() == "0/1 nodes are available: 1 cannot schedule extended resource claim."


def test_a_resource_that_nothing_stands_behind_is_insufficient(cluster: Cluster) -> None:
    cluster.node("bare")
    with pytest.raises(NoFit) as refused:
        place(cluster, asking(cluster, container("c", 1)))
    assert refused.value.message() == f"0/1 nodes are available: 1 Insufficient {GPU}."
