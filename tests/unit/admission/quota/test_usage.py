"""What objects use, and which quotas speak of them."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.admission.environment import Environment
from pilothouse.admission.quota.amounts import show
from pilothouse.admission.quota.claims import ResourceClaimEvaluator, VolumeClaimEvaluator
from pilothouse.admission.quota.evaluators import Evaluator, ServiceEvaluator
from pilothouse.admission.quota.pods import PodEvaluator
from pilothouse.admission.quota.scopes import claim_in_scope, pod_in_scope, scopes_of
from pilothouse.machinery.gvk import GroupResource

SERVICES = GroupResource("", "services")


def container(requests: Any = None, limits: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def pod(*containers: Any, **more: Any) -> dict[str, Any]:
    status = more.pop("status", {})
    metadata = more.pop("metadata", {})
    return {"metadata": metadata, "spec": {"containers": list(containers), **more}, "status": status}


@pytest.mark.parametrize(
    ("obj", "used"),
    [
        (pod(container()), "count/pods=1,pods=1"),
        (
            pod(container({"cpu": "1", "memory": "1Gi"}, {"cpu": "2"}), container({"cpu": "500m"})),
            "count/pods=1,cpu=1500m,limits.cpu=2,memory=1Gi,pods=1,requests.cpu=1500m,requests.memory=1Gi",
        ),
        (pod(container({"hugepages-2Mi": "2Mi"})), "count/pods=1,hugepages-2Mi=2Mi,pods=1,requests.hugepages-2Mi=2Mi"),
        (pod(container({"example.com/gpu": "2"})), "count/pods=1,pods=1,requests.example.com/gpu=2"),
        (
            pod(container({"cpu": "1"}), overhead={"cpu": "250m"}),
            "count/pods=1,cpu=1250m,pods=1,requests.cpu=1250m",
        ),
        (
            pod(container({"cpu": "1"}), resources={"requests": {"cpu": "3"}}),
            "count/pods=1,cpu=3,pods=1,requests.cpu=3",
        ),
        (pod(container({"cpu": "1"}), status={"phase": "Succeeded"}), "count/pods=1"),
        (
            pod(
                container({"cpu": "1"}),
                status={"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
            ),
            "count/pods=1,cpu=2,pods=1,requests.cpu=2",
        ),
        (
            pod(
                container({"cpu": "5"}),
                status={
                    "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}],
                    "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
                },
            ),
            "count/pods=1,cpu=1,pods=1,requests.cpu=1",
        ),
    ],
)
def test_pods(obj: dict[str, Any], used: str) -> None:
    assert show(PodEvaluator().usage(obj, "ns")) == used


@pytest.mark.parametrize(("now", "used"), [(0.0, "count/pods=1,pods=1"), (4e9, "count/pods=1")])
def test_pods_that_should_be_gone(now: float, used: str) -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    assert show(PodEvaluator(now=lambda: now).usage(pod(metadata=going), "ns")) == used


@pytest.mark.parametrize(
    ("names", "obj", "missing"),
    [
        (["requests.cpu", "pods"], pod(container({"cpu": "1"})), ""),
        (
            ["limits.memory", "requests.cpu"],
            pod(container(), {**container({"cpu": "1"}), "name": "d"}),
            "must specify limits.memory for: c,d; requests.cpu for: c",
        ),
        (["cpu"], pod(container(limits={"cpu": "1"})), "must specify cpu for: c"),
        (["requests.cpu"], pod(container(), resources={"requests": {"cpu": "1"}}), ""),
    ],
)
def test_what_pods_must_state(names: list[str], obj: dict[str, Any], missing: str) -> None:
    assert PodEvaluator().missing(names, obj) == missing


@pytest.mark.parametrize(
    ("name", "speaks_of_pods"),
    [
        ("pods", True),
        ("count/pods", True),
        ("requests.nvidia.com/gpu", True),
        ("limits.nvidia.com/gpu", False),
        ("hugepages-1Gi", True),
        ("requests.storage", False),
        ("services", False),
    ],
)
def test_names_of_pods(name: str, speaks_of_pods: bool) -> None:
    assert bool(PodEvaluator().matching([name])) is speaks_of_pods


@pytest.mark.parametrize(
    ("spec", "used"),
    [
        ({"type": "ClusterIP", "ports": [{}]}, "0 0"),
        ({"type": "NodePort", "ports": [{}, {}]}, "2 0"),
        ({"type": "LoadBalancer", "ports": [{}, {}]}, "2 1"),
        (
            {"type": "LoadBalancer", "ports": [{"nodePort": 1}, {}], "allocateLoadBalancerNodePorts": False},
            "1 1",
        ),
    ],
)
def test_services(spec: dict[str, Any], used: str) -> None:
    found = ServiceEvaluator(SERVICES).usage({"spec": spec}, "ns")
    assert f"{found['services.nodeports']} {found['services.loadbalancers']}" == used


@pytest.mark.parametrize(
    ("claim", "used"),
    [
        (
            {"spec": {"resources": {"requests": {"storage": "1500m"}}}},
            "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2",
        ),
        (
            {
                "spec": {"storageClassName": "gold", "resources": {"requests": {"storage": "1Gi"}}},
                "status": {"allocatedResources": {"storage": "2Gi"}},
            },
            "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,"
            "gold.storageclass.storage.k8s.io/requests.storage=2Gi,persistentvolumeclaims=1,requests.storage=2Gi",
        ),
    ],
)
def test_volume_claims(claim: dict[str, Any], used: str) -> None:
    evaluator = VolumeClaimEvaluator()
    found = evaluator.usage(claim, "ns")
    assert show(found) == used
    assert sorted(evaluator.matching(found)) == sorted(found)


async def test_resource_claims(environment: Environment, put: Any) -> None:
    await put("resource.k8s.io/v1/deviceclasses", "gpu", spec={"extendedResourceName": "example.com/gpu"})
    devices = environment.objects("resource.k8s.io", "v1", "deviceclasses")
    pods = environment.objects("", "v1", "pods")
    claims = environment.objects("resource.k8s.io", "v1", "resourceclaims")
    for objects in (devices, pods, claims):
        await objects.ready()
    evaluator = ResourceClaimEvaluator(devices, pods, claims)
    requests = [
        {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {
            "firstAvailable": [
                {"deviceClassName": "nic", "allocationMode": "ExactCount", "count": 1},
                {"deviceClassName": "nic", "allocationMode": "All"},
            ]
        },
    ]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    assert show(evaluator.usage(claim, "ns")) == (
        "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=2,"
        "nic.deviceclass.resource.k8s.io/devices=32,requests.deviceclass.resource.kubernetes.io/gpu=2,"
        "requests.deviceclass.resource.kubernetes.io/nic=32,requests.example.com/gpu=2"
    )
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    await put("/v1/pods", "p", "ns", **pod(container({"example.com/gpu": "2"}), metadata={"uid": "u"}))
    claim["metadata"] |= {
        "namespace": "ns",
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    assert "requests.example.com/gpu" not in evaluator.usage(claim, "ns")


@pytest.mark.parametrize(
    ("resource", "names"),
    [
        (GroupResource("", "configmaps"), ["configmaps", "count/configmaps"]),
        (GroupResource("apps", "deployments"), ["count/deployments.apps"]),
        (GroupResource("example.com", "things"), ["count/things.example.com"]),
    ],
)
def test_counts(resource: GroupResource, names: list[str]) -> None:
    assert sorted(Evaluator(resource).usage({}, "ns")) == names


def scope(name: str, operator: str = "Exists", *values: str) -> dict[str, Any]:
    return {"scopeName": name, "operator": operator, "values": list(values)}


CROSSING = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {"namespaces": ["x"]}}]
        }
    }
}


@pytest.mark.parametrize(
    ("wanted", "obj", "inside"),
    [
        (scope("Terminating"), pod(activeDeadlineSeconds=5), True),
        (scope("NotTerminating"), pod(), True),
        (scope("BestEffort"), pod(container()), True),
        (scope("NotBestEffort"), pod(container({"cpu": "1"})), True),
        (scope("PriorityClass"), pod(priorityClassName="high"), True),
        (scope("PriorityClass"), pod(), False),
        (scope("PriorityClass", "In", "high"), pod(priorityClassName="high"), True),
        (scope("PriorityClass", "In", "high"), pod(priorityClassName="low"), False),
        (scope("PriorityClass", "NotIn", "high"), pod(), True),
        (scope("PriorityClass", "DoesNotExist"), pod(), True),
        (scope("CrossNamespacePodAffinity"), pod(**CROSSING), True),
        (scope("CrossNamespacePodAffinity"), pod(), False),
        (scope("Unheard"), pod(), False),
    ],
)
def test_scopes_of_pods(wanted: dict[str, Any], obj: dict[str, Any], inside: bool) -> None:
    assert pod_in_scope(wanted, obj) is inside


def test_scopes_of_claims() -> None:
    claim = {"spec": {"volumeAttributesClassName": "fast"}, "status": {"currentVolumeAttributesClassName": "slow"}}
    assert claim_in_scope(scope("VolumeAttributesClass", "In", "slow"), claim)
    assert not claim_in_scope(scope("VolumeAttributesClass", "In", "other"), claim)
    assert not claim_in_scope(scope("PriorityClass"), claim)


def test_both_ways_to_write_scopes() -> None:
    spec = {"scopes": ["BestEffort"], "scopeSelector": {"matchExpressions": [scope("PriorityClass")]}}
    assert [each["scopeName"] for each in scopes_of(spec)] == ["BestEffort", "PriorityClass"]
