from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.resource_claims import claim_name, generate_name, is_done
from pilothouse.testing.running_controllers import RunningControllers


@pytest.mark.parametrize(
    ("pod", "claim", "name"),
    [("p", "c", "p-c-"), ("p" * 60, "c", "p" * 54 + "-"), ("p" * 50, "c" * 50, "p" * 27 + "-" + "c" * 27)],
)
def test_generated_names(pod: str, claim: str, name: str) -> None:
    assert generate_name(pod, claim) == name


def test_the_claim_of_an_entry() -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "t"}
    assert claim_name({}, {"name": "gpu", "resourceClaimName": "c"}) == "c"
    assert claim_name({}, entry) is None
    assert claim_name({"status": {"resourceClaimStatuses": [{"name": "gpu"}]}}, entry) == ""
    named = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "x"}]}}
    assert claim_name(named, entry) == "x"


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
