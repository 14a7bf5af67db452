"""Devices for resource claims: what is chosen, what is refused, and what the claim's status says of it."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.objects import Object
from pilothouse.simulation.scheduler.devices.claims import plan_for
from pilothouse.simulation.scheduler.devices.results import allocation_of
from pilothouse.simulation.scheduler.filters.verdict import FilterFailed
from pilothouse.simulation.scheduler.placement import NoFit, Placement
from pilothouse.simulation.scheduler.pod_info import PodInfo

from .conftest import Cluster

DRIVER = "gpu.example.com"


def device(name: str, **more: Any) -> Object:
    attributes = {key: {kind: value} for key, (kind, value) in more.pop("attributes", {}).items()}
    return {"name": name, "attributes": attributes, **more}


def publish(
    cluster: Cluster, node: str, *devices: Object, name: str = "", pool: str = "", count: int = 1, **spec: Any
) -> None:
    where = {} if spec.keys() & {"allNodes", "nodeSelector", "perDeviceNodeSelection"} else {"nodeName": node}
    stated = {"name": pool or node, "generation": spec.pop("generation", 1), "resourceSliceCount": count}
    body = {"driver": DRIVER, "pool": stated, "devices": list(devices), **where, **spec}
    cluster.put("slice", {"metadata": {"name": name or f"{pool or node}-slice"}, "spec": body})


def gpu_class(cluster: Cluster, name: str = "gpu", **spec: Any) -> None:
    cluster.put("deviceclass", {"metadata": {"name": name}, "spec": spec})


def request(name: str = "r", device_class: str = "gpu", **more: Any) -> Object:
    return {"name": name, "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", **more}}


def claim(cluster: Cluster, name: str, *requests: Object, status: Object | None = None, **more: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "uid": f"claim-{name}", "resourceVersion": "1"}
    made: Object = {
        "metadata": metadata,
        "spec": {"devices": {"requests": list(requests), **more}},
        "status": status or {},
    }
    cluster.put("resourceclaim", made)
    cluster.ledger.see(made)
    return made


def using(cluster: Cluster, *names: str) -> PodInfo:
    return cluster.pod("p", resourceClaims=[{"name": name, "resourceClaimName": name} for name in names])


def place(cluster: Cluster, pod: PodInfo) -> tuple[str, list[Object]]:
    """The node, and what the claims of the pod get there."""
    info = Placement(choose=lambda nodes: nodes[0]).find(pod, cluster.view)
    plan = plan_for(pod, cluster.view)
    choices = plan.choose(info)
    assert choices is not None
    return info.name, [
        allocation_of(each, choice, info.name) for each, choice in zip(plan.unallocated, choices, strict=True)
    ]


def devices_in(allocation: Object) -> list[str]:
    return [each["device"] for each in allocation["devices"]["results"]]


def refusal(cluster: Cluster, pod: PodInfo) -> str:
    with pytest.raises(NoFit) as refused:
        place(cluster, pod)
    return refused.value.message()


@pytest.fixture
def two_nodes(cluster: Cluster) -> Cluster:
    """One node without devices, and one with two."""
    cluster.node("bare")
    cluster.node("rich")
    gpu_class(cluster, selectors=[{"cel": {"expression": f'device.driver == "{DRIVER}"'}}])
    publish(
        cluster,
        "rich",
        device("d0", attributes={"model": ("string", "a"), "numa": ("int", 0)}),
        device("d1", attributes={"model": ("string", "b"), "numa": ("int", 0)}, capacity={"memory": {"value": "8Gi"}}),
    )
    return cluster


def test_a_device_is_found_where_it_is(two_nodes: Cluster) -> None:
    claim(two_nodes, "c", request())
    node, [allocation] = place(two_nodes, using(two_nodes, "c"))
    assert node == "rich"
    assert allocation == {
        "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "rich", "device": "d0"}]},
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["rich"]}]}]
        },
    }


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.attributes["gpu.example.com"].model == "b"', "d1"),
        ('device.attributes["gpu.example.com"].numa == 0', "d0"),
        ('device.capacity["gpu.example.com"].?memory.orValue(quantity("0")).compareTo(quantity("4Gi")) > 0', "d1"),
        ('has(device.attributes["other.example.com"].x) || device.attributes["gpu.example.com"].model == "b"', "d1"),
        ('!device.allowMultipleAllocations && device.driver.endsWith("example.com")', "d0"),
    ],
)
def test_selectors(two_nodes: Cluster, expression: str, expected: str) -> None:
    claim(two_nodes, "c", request(selectors=[{"cel": {"expression": expression}}]))
    _, [allocation] = place(two_nodes, using(two_nodes, "c"))
    assert devices_in(allocation) == [expected]


def test_a_selector_that_fails_stops_scheduling(two_nodes: Cluster) -> None:
    expression = 'device.attributes["gpu.example.com"].missing == 1'
    claim(two_nodes, "c", request(selectors=[{"cel": {"expression": expression}}]))
    with pytest.raises(FilterFailed) as failed:
        place(two_nodes, using(two_nodes, "c"))
    assert str(failed.value).startswith(
        'running "DynamicResources" filter plugin: claim default/c: selector #0 on device gpu.example.com/rich/d0: '
        "CEL runtime error: no such key: missing. consider using CEL optional chaining"
    )


def test_counts_and_all(two_nodes: Cluster) -> None:
    claim(two_nodes, "both", request(count=2))
    assert devices_in(place(two_nodes, using(two_nodes, "both"))[1][0]) == ["d0", "d1"]
    claim(two_nodes, "all", request(allocationMode="All"))
    assert devices_in(place(two_nodes, using(two_nodes, "all"))[1][0]) == ["d0", "d1"]
    claim(two_nodes, "three", request(count=3))
    assert refusal(two_nodes, using(two_nodes, "three")) == ("0/2 nodes are available: 2 cannot allocate all claims.")


def test_devices_in_use_are_not_given_again(two_nodes: Cluster) -> None:
    claim(two_nodes, "first", request(), status={"allocation": {"devices": {"results": [taken("d0")]}}})
    claim(two_nodes, "second", request())
    assert devices_in(place(two_nodes, using(two_nodes, "second"))[1][0]) == ["d1"]
    two_nodes.ledger.decide("claim-second", {"devices": {"results": [taken("d1")]}})
    claim(two_nodes, "third", request())
    assert refusal(two_nodes, using(two_nodes, "third")) == "0/2 nodes are available: 2 cannot allocate all claims."
    assert refusal(two_nodes, using(two_nodes, "second")) == (
        "0/2 nodes are available: resource claim default/second is in the process of being allocated."
    )
    assert two_nodes.ledger.settle("claim-second")
    assert devices_in(place(two_nodes, using(two_nodes, "third"))[1][0]) == ["d1"]


def taken(name: str, **more: Any) -> Object:
    return {"request": "r", "driver": DRIVER, "pool": "rich", "device": name, **more}


def test_administration_is_no_use(two_nodes: Cluster) -> None:
    claim(two_nodes, "user", request(), status={"allocation": {"devices": {"results": [taken("d0")]}}})
    claim(two_nodes, "admin", request(adminAccess=True, allocationMode="All"))
    _, [allocation] = place(two_nodes, using(two_nodes, "admin"))
    assert [(each["device"], each["adminAccess"]) for each in allocation["devices"]["results"]] == [
        ("d0", True),
        ("d1", True),
    ]
    two_nodes.ledger.decide("claim-admin", allocation)
    claim(two_nodes, "other", request())
    assert devices_in(place(two_nodes, using(two_nodes, "other"))[1][0]) == ["d1"]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"matchAttribute": f"{DRIVER}/numa"}, ["d0", "d1"]),
        ({"matchAttribute": f"{DRIVER}/model"}, None),
        ({"distinctAttribute": f"{DRIVER}/model"}, ["d0", "d1"]),
        ({"distinctAttribute": f"{DRIVER}/numa"}, None),
        ({"distinctAttribute": f"{DRIVER}/numa", "requests": ["a"]}, ["d0", "d1"]),
        ({"matchAttribute": f"{DRIVER}/unknown"}, None),
    ],
)
def test_constraints(two_nodes: Cluster, constraint: Object, expected: list[str] | None) -> None:
    claim(two_nodes, "c", request("a"), request("b"), constraints=[constraint])
    pod = using(two_nodes, "c")
    if expected is None:
        assert "2 cannot allocate all claims" in refusal(two_nodes, pod)
    else:
        assert devices_in(place(two_nodes, pod)[1][0]) == expected


def test_the_search_comes_back_from_a_dead_end(two_nodes: Cluster) -> None:
    """The first request would take d0, which alone does for the second."""
    only_a = [{"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a"'}}]
    claim(two_nodes, "c1", request("any"))
    claim(two_nodes, "c2", request("a", selectors=only_a))
    _, allocations = place(two_nodes, using(two_nodes, "c1", "c2"))
    assert [devices_in(each) for each in allocations] == [["d1"], ["d0"]]


def test_the_first_alternative_that_can_be_had(two_nodes: Cluster) -> None:
    gpu_class(two_nodes, "huge", selectors=[{"cel": {"expression": "false"}}], config=[{"opaque": {"driver": "h"}}])
    gpu_class(two_nodes, "small", config=[{"opaque": {"driver": "s"}}])
    parts = [{"name": name, "deviceClassName": name, "allocationMode": "ExactCount"} for name in ("huge", "small")]
    own = [{"requests": ["r/huge"], "opaque": {"driver": "x"}}, {"requests": ["r/small"], "opaque": {"driver": "y"}}]
    claim(two_nodes, "c", {"name": "r", "firstAvailable": parts}, config=own)
    _, [allocation] = place(two_nodes, using(two_nodes, "c"))
    assert allocation["devices"]["results"][0]["request"] == "r/small"
    assert allocation["devices"]["config"] == [
        {"source": "FromClass", "opaque": {"driver": "s"}},
        {"source": "FromClaim", "opaque": {"driver": "y"}},
    ]


def test_nodes_with_the_better_alternative_are_better(cluster: Cluster) -> None:
    for name, model in (("n1", "b"), ("n2", "a"), ("n3", "b")):
        cluster.node(name)
        publish(cluster, name, device("d", attributes={"model": ("string", model)}))
    gpu_class(cluster)
    parts = [
        {
            "name": model,
            "deviceClassName": "gpu",
            "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "{model}"'}}],
        }
        for model in ("a", "b")
    ]
    claim(cluster, "c", {"name": "r", "firstAvailable": parts})
    assert place(cluster, using(cluster, "c"))[0] == "n2"


def test_an_allocated_claim_ties_the_pod_to_its_nodes(two_nodes: Cluster) -> None:
    selector = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
    }
    allocation = {"devices": {"results": [taken("d0")]}, "nodeSelector": selector}
    claim(two_nodes, "c", request(), status={"allocation": allocation})
    assert refusal(two_nodes, using(two_nodes, "c")) == (
        "0/2 nodes are available: 2 resourceclaim not available on the node."
    )


@pytest.mark.parametrize(
    ("prepare", "expected"),
    [
        (lambda cluster: None, 'resourceclaim.resource.k8s.io "c" not found'),
        (lambda cluster: claim(cluster, "c", request("r", "no")), "request r: device class no does not exist"),
    ],
)
def test_what_no_node_can_help(two_nodes: Cluster, prepare: Any, expected: str) -> None:
    prepare(two_nodes)
    assert refusal(two_nodes, using(two_nodes, "c")) == f"0/2 nodes are available: {expected}."


def test_claims_of_templates_must_belong_to_the_pod(two_nodes: Cluster) -> None:
    claim(two_nodes, "c", request())
    status = {"resourceClaimStatuses": [{"name": "mine", "resourceClaimName": "c"}]}
    wanted = [{"name": "mine", "resourceClaimTemplateName": "t"}]
    pod = two_nodes.pod("p", resourceClaims=wanted, status=status)
    assert "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)" in refusal(two_nodes, pod)
    pod = two_nodes.pod("p", resourceClaims=wanted)
    assert 'pod "default/p": ResourceClaim not created yet' in refusal(two_nodes, pod)


def test_taints_of_devices_and_rules(two_nodes: Cluster) -> None:
    taint = {"key": "broken", "value": "", "effect": "NoSchedule"}
    rule = {"spec": {"deviceSelector": {"driver": DRIVER, "device": "d0"}, "taint": taint}}
    two_nodes.put("taintrule", {"metadata": {"name": "t"}, **rule})
    claim(two_nodes, "c", request())
    assert devices_in(place(two_nodes, using(two_nodes, "c"))[1][0]) == ["d1"]
    toleration = {"key": "broken", "operator": "Exists"}
    claim(two_nodes, "tolerant", request(tolerations=[toleration]))
    _, [allocation] = place(two_nodes, using(two_nodes, "tolerant"))
    assert allocation["devices"]["results"][0]["tolerations"] == [toleration]
    assert devices_in(allocation) == ["d0"]


def test_pools_are_whole_or_not_used(two_nodes: Cluster) -> None:
    publish(two_nodes, "bare", device("x"), count=2)
    claim(two_nodes, "one", request())
    assert place(two_nodes, using(two_nodes, "one"))[0] == "rich"
    claim(two_nodes, "all", request(allocationMode="All"))
    with pytest.raises(FilterFailed, match=r"resource pool gpu.example.com/bare is currently being updated"):
        place(two_nodes, using(two_nodes, "all"))
    publish(two_nodes, "bare", device("y"), count=2, name="second")
    claim(two_nodes, "two", request(count=2))
    place(two_nodes, using(two_nodes, "two"))
    publish(two_nodes, "bare", device("z"), generation=2, name="newer")
    info = two_nodes.snapshot.node("bare")
    assert info is not None
    choices = plan_for(using(two_nodes, "one"), two_nodes.view).choose(info)
    assert choices is not None and choices[0].devices[0].device.id.device == "z"


def test_a_pool_with_the_same_name_twice_is_invalid(cluster: Cluster) -> None:
    cluster.node("n")
    gpu_class(cluster)
    publish(cluster, "n", device("d"), device("d"))
    claim(cluster, "c", request())
    assert refusal(cluster, using(cluster, "c")) == (
        "0/1 nodes are available: 1 invalid resource pools were encountered."
    )


def test_devices_of_the_network_tie_to_nothing_or_to_labels(cluster: Cluster) -> None:
    cluster.node("n1", labels={"rack": "a"})
    cluster.node("n2", labels={"rack": "b"})
    gpu_class(cluster)
    terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["b"]}]}]
    publish(cluster, "", device("d"), pool="rack-b", nodeSelector={"nodeSelectorTerms": terms})
    claim(cluster, "c", request())
    node, [allocation] = place(cluster, using(cluster, "c"))
    assert (node, allocation["nodeSelector"]) == ("n2", {"nodeSelectorTerms": terms})
    cluster.ledger.decide("claim-c", allocation)
    publish(cluster, "", device("d"), pool="net", allNodes=True)
    claim(cluster, "any", request())
    assert "nodeSelector" not in place(cluster, using(cluster, "any"))[1][0]


def test_shares_of_a_device(cluster: Cluster) -> None:
    cluster.node("n")
    gpu_class(cluster)
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi", "max": "6Gi"}}
    capacity = {"memory": {"value": "8Gi", "requestPolicy": policy}}
    publish(cluster, "n", device("d", allowMultipleAllocations=True, capacity=capacity), pool="rich")
    for number, (wanted, consumed) in enumerate([("1500Mi", "2Gi"), ("5Gi", "5Gi"), (None, "1Gi")]):
        more = {} if wanted is None else {"capacity": {"requests": {"memory": wanted}}}
        claim(cluster, f"c{number}", request(**more))
        _, [allocation] = place(cluster, using(cluster, f"c{number}"))
        result = allocation["devices"]["results"][0]
        assert result["consumedCapacity"] == {"memory": consumed} and result["shareID"]
        cluster.ledger.decide(f"claim-c{number}", allocation)
    claim(cluster, "full", request())
    assert "cannot allocate all claims" in refusal(cluster, using(cluster, "full"))
    cluster.ledger.settle("claim-c1")
    claim(cluster, "too-much", request(capacity={"requests": {"memory": "7Gi"}}))
    assert "cannot allocate all claims" in refusal(cluster, using(cluster, "too-much"))
    place(cluster, using(cluster, "full"))


def test_counters_of_a_pool(cluster: Cluster) -> None:
    """Two halves or the whole of one device."""
    cluster.node("n")
    gpu_class(cluster)
    counters = [{"name": "gpu", "counters": {"memory": {"value": "8Gi"}}}]
    draw = lambda amount: [{"counterSet": "gpu", "counters": {"memory": {"value": amount}}}]  # noqa: E731
    publish(cluster, "n", pool="rich", count=2, name="counters", sharedCounters=counters)
    publish(
        cluster,
        "n",
        device("half-1", consumesCounters=draw("4Gi")),
        device("half-2", consumesCounters=draw("4Gi")),
        device("whole", consumesCounters=draw("8Gi")),
        pool="rich",
        count=2,
        name="devices",
    )
    claim(cluster, "two", request(count=2))
    assert devices_in(place(cluster, using(cluster, "two"))[1][0]) == ["half-1", "half-2"]
    claim(cluster, "three", request(count=3))
    assert "cannot allocate all claims" in refusal(cluster, using(cluster, "three"))
    cluster.ledger.decide("claim-x", {"devices": {"results": [taken("half-2")]}})
    claim(cluster, "one", request())
    assert devices_in(place(cluster, using(cluster, "one"))[1][0]) == ["half-1"]
    assert "cannot allocate all claims" in refusal(cluster, using(cluster, "two"))


def test_a_search_without_end_is_given_up(cluster: Cluster) -> None:
    cluster.node("n")
    gpu_class(cluster)
    publish(cluster, "n", *(device(f"d{each}", attributes={"k": ("int", each % 2)}) for each in range(40)))
    constraints = [{"matchAttribute": f"{DRIVER}/k"}]
    claim(cluster, "c", request("a", count=12), request("b", count=12), constraints=constraints)
    with pytest.raises(FilterFailed, match="node n: timed out trying to allocate devices"):
        place(cluster, using(cluster, "c"))
