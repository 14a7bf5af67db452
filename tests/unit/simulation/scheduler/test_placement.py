from __future__ import annotations

from typing import Any

import pytest

from pilothouse.simulation.scheduler.placement import NoFit, NoNodes, Placement

from .conftest import Cluster

ZONE = "topology.kubernetes.io/zone"


def find(cluster: Cluster, pod: Any) -> str:
    return Placement(choose=lambda nodes: nodes[0]).find(pod, cluster.view).name


def refusal(cluster: Cluster, pod: Any) -> str:
    with pytest.raises(NoFit) as refused:
        find(cluster, pod)
    return refused.value.message()


def anti(key: str, labels: dict[str, str], kind: str = "podAntiAffinity") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_no_nodes(cluster: Cluster) -> None:
    with pytest.raises(NoNodes):
        find(cluster, cluster.pod("p"))


def test_reasons_are_counted_and_sorted(cluster: Cluster) -> None:
    cluster.node("small", cpu="1")
    cluster.node("tainted", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    cluster.node("cordoned", unschedulable=True)
    cluster.node("full", pods="1", cpu="1")
    cluster.pod("there", "full")
    assert refusal(cluster, cluster.pod("p", cpu="3")) == (
        "0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable, 2 Insufficient cpu."
    )


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "k", "operator": "Exists"},
        {"operator": "Exists"},
        {"key": "k", "value": "v"},
        {"key": "k", "value": "v", "effect": "NoSchedule"},
    ],
)
def test_tolerated_taints(cluster: Cluster, toleration: dict[str, Any]) -> None:
    cluster.node("n", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    assert find(cluster, cluster.pod("p", tolerations=[toleration])) == "n"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd"]}, "b"),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, "a"),
        ({"key": "disk", "operator": "Exists"}, "b"),
        ({"key": "disk", "operator": "DoesNotExist"}, "a"),
        ({"key": "rank", "operator": "Gt", "values": ["5"]}, "b"),
        ({"key": "rank", "operator": "Lt", "values": ["5"]}, "a"),
    ],
)
def test_node_affinity(cluster: Cluster, expression: dict[str, Any], expected: str) -> None:
    cluster.node("a", labels={"rank": "1"})
    cluster.node("b", labels={"disk": "ssd", "rank": "9"})
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert find(cluster, cluster.pod("p", affinity=affinity)) == expected


def test_node_selector_refuses(cluster: Cluster) -> None:
    cluster.node("a")
    text = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    assert refusal(cluster, cluster.pod("p", nodeSelector={"x": "y"})) == text


def test_host_ports_are_taken_once(cluster: Cluster) -> None:
    cluster.node("a")
    ports = [{"hostPort": 80, "containerPort": 80}]
    cluster.pod("first", "a", ports=ports)
    assert "didn't have free ports" in refusal(cluster, cluster.pod("second", ports=ports))


def test_anti_affinity_keeps_apart_both_ways(cluster: Cluster) -> None:
    cluster.node("a", labels={ZONE: "1"})
    cluster.node("b", labels={ZONE: "1"})
    cluster.node("c", labels={ZONE: "2"})
    cluster.pod("there", "a", labels={"app": "x"})
    assert find(cluster, cluster.pod("p", affinity=anti(ZONE, {"app": "x"}))) == "c"
    cluster.pod("shy", "c", affinity=anti(ZONE, {"app": "loud"}))
    assert find(cluster, cluster.pod("loud", labels={"app": "loud"})) in ("a", "b")


def test_affinity_goes_near_and_the_first_may_go_anywhere(cluster: Cluster) -> None:
    cluster.node("a", labels={ZONE: "1"})
    cluster.node("b", labels={ZONE: "2"})
    wanted = anti(ZONE, {"app": "x"}, "podAffinity")
    assert "didn't match pod affinity rules" in refusal(cluster, cluster.pod("other", affinity=wanted))
    assert find(cluster, cluster.pod("first", labels={"app": "x"}, affinity=wanted)) in ("a", "b")
    cluster.pod("there", "b", labels={"app": "x"})
    assert find(cluster, cluster.pod("other", affinity=wanted)) == "b"


def test_affinity_across_namespaces(cluster: Cluster) -> None:
    cluster.node("a")
    cluster.put("namespace", {"metadata": {"name": "other", "labels": {"team": "t"}}})
    cluster.pod("there", "a", labels={"app": "x"}, namespace="other")
    affinity = anti("kubernetes.io/hostname", {"app": "x"})
    assert find(cluster, cluster.pod("p", affinity=affinity)) == "a"
    term = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["namespaceSelector"] = {"matchLabels": {"team": "t"}}
    assert "anti-affinity" in refusal(cluster, cluster.pod("p", affinity=affinity))


def spread(skew: int = 1, **more: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "x"}}
    return [
        {"topologyKey": ZONE, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector, **more}
    ]


def test_spreading_fills_the_emptiest_domain(cluster: Cluster) -> None:
    cluster.node("a", labels={ZONE: "1"})
    cluster.node("b", labels={ZONE: "2"})
    cluster.pod("there", "a", labels={"app": "x"})
    pod = cluster.pod("p", labels={"app": "x"}, topologySpreadConstraints=spread())
    assert find(cluster, pod) == "b"


def test_spreading_over_fewer_domains_than_wanted(cluster: Cluster) -> None:
    cluster.node("a", labels={ZONE: "1"})
    cluster.node("b")
    cluster.pod("there", "a", labels={"app": "x"})
    pod = cluster.pod("p", labels={"app": "x"}, topologySpreadConstraints=spread(minDomains=2))
    assert refusal(cluster, pod) == (
        "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, "
        "1 node(s) didn't match pod topology spread constraints (missing required label)."
    )


def test_scores_prefer_the_emptier_node(cluster: Cluster) -> None:
    cluster.node("a")
    cluster.node("b")
    cluster.pod("there", "a", cpu="2")
    assert find(cluster, cluster.pod("p", cpu="1")) == "b"


def test_scores_spread_the_pods_of_a_service(cluster: Cluster) -> None:
    cluster.node("a", cpu="100", memory="100Gi")
    cluster.node("b")
    cluster.put("service", {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}}})
    cluster.pod("there", "a", labels={"app": "x"})
    assert find(cluster, cluster.pod("p", labels={"app": "x"})) == "b"


def test_scores_honour_preferences(cluster: Cluster) -> None:
    cluster.node("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    cluster.node("b")
    assert find(cluster, cluster.pod("p")) == "b"
    preferred = {"weight": 100, "preference": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    cluster.node("c", labels={"gpu": "1"})
    assert find(cluster, cluster.pod("p", affinity=affinity)) == "c"


def test_a_nominated_node_comes_first(cluster: Cluster) -> None:
    for name in "abc":
        cluster.node(name)
    assert find(cluster, cluster.pod("p", status={"nominatedNodeName": "c"})) == "c"


def test_claims(cluster: Cluster) -> None:
    cluster.node("a", labels={ZONE: "1"})
    cluster.node("b", labels={ZONE: "2"})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    pod = cluster.pod("p", volumes=volumes)
    assert refusal(cluster, pod) == '0/2 nodes are available: persistentvolumeclaim "c" not found.'
    claim: dict[str, Any] = {"metadata": {"name": "c", "namespace": "default", "uid": "u"}, "spec": {}, "status": {}}
    cluster.put("claim", claim)
    assert "pod has unbound immediate PersistentVolumeClaims" in refusal(cluster, pod)
    claim["spec"] = {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]}
    cluster.put("class", {"metadata": {"name": "late"}, "volumeBindingMode": "WaitForFirstConsumer"})
    assert "didn't find available persistent volumes to bind" in refusal(cluster, pod)
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["2"]}]}]
    volume = {
        "metadata": {"name": "pv"},
        "spec": {
            "storageClassName": "late",
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
        "status": {"phase": "Available"},
    }
    cluster.put("volume", volume)
    assert find(cluster, pod) == "b"
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["spec"]["volumeName"] = "pv"
    assert find(cluster, pod) == "b"


def test_many_nodes_are_searched_in_turns(cluster: Cluster) -> None:
    for number in range(300):
        cluster.node(f"n{number}", labels={"parity": str(number % 2)})
    placement = Placement(choose=lambda nodes: nodes[0])
    first = placement.find(cluster.pod("p"), cluster.view).name
    second = placement.find(cluster.pod("q"), cluster.view).name
    assert first != second


def test_drivers_that_tell_how_much_room_they_have(cluster: Cluster) -> None:
    cluster.node("full", labels={"rack": "a"})
    cluster.node("roomy", labels={"rack": "b"})
    metadata = {"name": "c", "namespace": "default", "uid": "u"}
    spec = {
        "storageClassName": "local",
        "resources": {"requests": {"storage": "5Gi"}},
        "accessModes": ["ReadWriteOnce"],
    }
    cluster.put("claim", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
    cluster.put(
        "class",
        {"metadata": {"name": "local"}, "provisioner": "d.example.com", "volumeBindingMode": "WaitForFirstConsumer"},
    )
    cluster.put("csidriver", {"metadata": {"name": "d.example.com"}, "spec": {"storageCapacity": True}})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    assert refusal(cluster, cluster.pod("p", volumes=[volume])) == (
        "0/2 nodes are available: 2 node(s) did not have enough free storage."
    )
    for rack, capacity in (("a", "1Gi"), ("b", "10Gi")):
        topology = {"matchLabels": {"rack": rack}}
        stated = {"storageClassName": "local", "capacity": capacity, "nodeTopology": topology}
        cluster.put("capacity", {"metadata": {"name": rack}, **stated})
    assert find(cluster, cluster.pod("p", volumes=[volume])) == "roomy"
