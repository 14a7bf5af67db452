"""The controllers of volumes on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.machinery import errors
from pilothouse.testing.running_controllers import RunningControllers

MODULES = (
    "volumes.binder",
    "volumes.claim_protection",
    "volumes.volume_protection",
    "volumes.attribute_class_protection",
    "volumes.ephemeral",
    "volumes.attachments",
    "volumes.expander",
)


class Volumes(RunningControllers):
    """A cluster with all controllers of volumes."""

    async def volume(self, name: str, **spec: Any) -> None:
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp/x"},
            **spec,
        }
        if "csi" in spec:
            del spec["hostPath"]
        await self.of("", "v1", "persistentvolumes").create({"metadata": {"name": name}, "spec": spec})

    async def claim(self, name: str, **spec: Any) -> None:
        spec = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"], **spec}
        metadata = {"name": name, "namespace": "default"}
        await self.of("", "v1", "persistentvolumeclaims").create({"metadata": metadata, "spec": spec})

    async def pod(self, name: str, **spec: Any) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}], **spec}
        await self.of("", "v1", "pods").create({"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    async def storage_class(self, name: str, **fields: Any) -> None:
        await self.of("storage.k8s.io", "v1", "storageclasses").create(
            {"metadata": {"name": name, "annotations": fields.pop("annotations", {})}, **fields}
        )

    async def claim_in(self, name: str, phase: str) -> dict[str, Any]:
        claims = self.of("", "v1", "persistentvolumeclaims")
        return await self.wait(claims, "default", name, lambda obj: obj["status"].get("phase") == phase)

    async def volume_in(self, name: str, phase: str) -> dict[str, Any]:
        volumes = self.of("", "v1", "persistentvolumes")
        return await self.wait(volumes, "", name, lambda obj: obj["status"].get("phase") == phase)


@pytest.fixture
async def cluster() -> AsyncIterator[Volumes]:
    async with Volumes(*MODULES) as running:
        yield running


async def test_binding_releasing_and_keeping(cluster: Volumes) -> None:
    await cluster.volume("v", persistentVolumeReclaimPolicy="Retain")
    await cluster.volume_in("v", "Available")
    await cluster.claim("c", storageClassName="")
    claim = await cluster.claim_in("c", "Bound")
    assert claim["spec"]["volumeName"] == "v"
    assert claim["status"]["capacity"] == {"storage": "1Gi"} and claim["status"]["accessModes"] == ["ReadWriteOnce"]
    assert claim["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    volume = await cluster.volume_in("v", "Bound")
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    await cluster.of("", "v1", "persistentvolumeclaims").delete("default", "c")
    await cluster.volume_in("v", "Released")
    await cluster.of("", "v1", "persistentvolumes").delete("", "v")
    await cluster.wait_gone(cluster.of("", "v1", "persistentvolumes"), "", "v")


async def test_a_claim_waits_for_its_volume(cluster: Volumes) -> None:
    await cluster.claim("c", storageClassName="")
    event = await cluster.wait_event("default", "FailedBinding", "c")
    assert event["message"] == "no persistent volumes available for this claim and no storage class is set"
    await cluster.volume("v", persistentVolumeReclaimPolicy="Delete")
    await cluster.claim_in("c", "Bound")
    await cluster.of("", "v1", "persistentvolumeclaims").delete("default", "c")
    await cluster.wait_gone(cluster.of("", "v1", "persistentvolumes"), "", "v")


async def test_a_volume_reserved_by_name_and_one_asked_for(cluster: Volumes) -> None:
    await cluster.volume("mine", claimRef={"namespace": "default", "name": "a"}, capacity={"storage": "9Gi"})
    await cluster.volume("other", volumeMode="Block")
    await cluster.volume_in("other", "Available")
    await cluster.claim("a", storageClassName="")
    claim = await cluster.claim_in("a", "Bound")
    assert claim["spec"]["volumeName"] == "mine"
    volume = await cluster.volume_in("mine", "Bound")
    assert "pv.kubernetes.io/bound-by-controller" not in (volume["metadata"].get("annotations") or {})
    await cluster.claim("b", storageClassName="", volumeName="other")
    event = await cluster.wait_event("default", "VolumeMismatch", "b")
    assert event["message"] == 'Cannot bind to requested volume "other": incompatible volumeMode'
    await cluster.claim("d", storageClassName="", volumeName="mine")
    event = await cluster.wait_event("default", "FailedBinding", "d")
    assert event["message"] == 'volume "mine" already bound to a different claim.'


async def test_a_lost_volume(cluster: Volumes) -> None:
    await cluster.volume("v")
    await cluster.claim("c", storageClassName="")
    await cluster.claim_in("c", "Bound")
    volumes = cluster.of("", "v1", "persistentvolumes")
    await volumes.delete("", "v")
    assert (await volumes.get("", "v"))["metadata"]["deletionTimestamp"]
    await volumes.patch("", "v", {"metadata": {"finalizers": None}})
    await cluster.claim_in("c", "Lost")
    event = await cluster.wait_event("default", "ClaimLost", "c")
    assert event["message"] == "Bound claim has lost its PersistentVolume. Data on the volume is lost!"


async def test_classes_come_late_and_provisioners_are_asked(cluster: Volumes) -> None:
    await cluster.claim("c")
    await cluster.wait_event("default", "FailedBinding", "c")
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    await cluster.storage_class("fast", provisioner="disks.example.com", annotations=default)
    claims = cluster.of("", "v1", "persistentvolumeclaims")
    claim = await cluster.wait(claims, "default", "c", lambda obj: "annotations" in obj["metadata"])
    assert claim["spec"]["storageClassName"] == "fast"
    assert claim["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"] == "disks.example.com"
    assert (await cluster.wait_event("default", "ExternalProvisioning", "c"))["message"].startswith("Waiting for a")


async def test_a_claim_that_waits_for_its_consumer(cluster: Volumes) -> None:
    await cluster.storage_class(
        "local", provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"
    )
    await cluster.volume("v", storageClassName="local")
    await cluster.volume_in("v", "Available")
    await cluster.claim("c", storageClassName="local")
    event = await cluster.wait_event("default", "WaitForFirstConsumer", "c")
    assert event["message"] == "waiting for first consumer to be created before binding"


async def test_claims_in_use_are_kept(cluster: Volumes) -> None:
    await cluster.claim("c", storageClassName="")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    await cluster.pod("p", volumes=[volume], nodeName="somewhere")
    claims = cluster.of("", "v1", "persistentvolumeclaims")
    await claims.delete("default", "c")
    # What the controller decides about a claim that nobody uses shows that it has had its turn.
    await cluster.claim("unused", storageClassName="")
    await claims.delete("default", "unused")
    await cluster.wait_gone(claims, "default", "unused")
    assert (await claims.get("default", "c"))["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    await cluster.of("", "v1", "pods").patch("default", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    await cluster.claim("unused-too", storageClassName="")
    await claims.delete("default", "unused-too")
    await cluster.wait_gone(claims, "default", "unused-too")
    await claims.get("default", "c")
    await cluster.of("", "v1", "pods").delete("default", "p", grace_seconds=0)
    await cluster.wait_gone(claims, "default", "c")


async def test_claims_say_whether_they_are_used(cluster: Volumes) -> None:
    await cluster.volume("v")
    await cluster.claim("c", storageClassName="")
    claims = cluster.of("", "v1", "persistentvolumeclaims")

    def says(status: str) -> Any:
        return lambda obj: [each["status"] for each in obj["status"].get("conditions") or ()] == [status]

    unused = await cluster.wait(claims, "default", "c", says("True"))
    assert unused["status"]["conditions"][0]["reason"] == "NoPodsUsingPVC"
    await cluster.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    await cluster.wait(claims, "default", "c", says("False"))
    await cluster.of("", "v1", "pods").patch("default", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    await cluster.wait(claims, "default", "c", says("True"))


async def test_ephemeral_volumes(cluster: Volumes) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    await cluster.claim("p-taken", storageClassName="")
    volumes = [{"name": "e", "ephemeral": {"volumeClaimTemplate": template}}]
    volumes.append({"name": "taken", "ephemeral": {"volumeClaimTemplate": template}})
    await cluster.pod("p", volumes=volumes)
    claim = await cluster.wait(cluster.of("", "v1", "persistentvolumeclaims"), "default", "p-e")
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    event = await cluster.wait_event("default", "FailedBinding", "p")
    assert event["message"] == (
        "ephemeral volume taken: PVC default/p-taken was not created for pod default/p (pod is not owner)"
    )


async def test_volumes_are_attached_to_one_node_at_a_time(cluster: Volumes) -> None:
    await cluster.volume("v", csi={"driver": "d.example.com", "volumeHandle": "h"})
    await cluster.claim("c", storageClassName="")
    await cluster.claim_in("c", "Bound")
    nodes, attachments = cluster.of("", "v1", "nodes"), cluster.of("storage.k8s.io", "v1", "volumeattachments")
    for name in ("one", "two"):
        annotations = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        await nodes.create({"metadata": {"name": name, "annotations": annotations}})
    theirs = {"attacher": "d.example.com", "nodeName": "one", "source": {"persistentVolumeName": "other"}}
    await attachments.create({"metadata": {"name": "theirs"}, "spec": theirs})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    await cluster.pod("p", volumes=[volume], nodeName="one")
    async with asyncio.timeout(60):
        while not (found := [each async for each in attachments.items() if each["metadata"]["name"] != "theirs"]):
            await asyncio.sleep(0.01)
    name = found[0]["metadata"]["name"]
    assert found[0]["spec"] == {
        "attacher": "d.example.com",
        "nodeName": "one",
        "source": {"persistentVolumeName": "v"},
    }
    await attachments.patch("", name, {"status": {"attached": True}}, subresource="status")
    node = await cluster.wait(nodes, "", "one", lambda obj: (obj.get("status") or {}).get("volumesAttached"))
    assert node["status"]["volumesAttached"] == [{"name": "kubernetes.io/csi/d.example.com^h", "devicePath": ""}]
    await cluster.wait_event("default", "SuccessfulAttachVolume", "p")
    await cluster.pod("q", volumes=[volume], nodeName="two")
    event = await cluster.wait_event("default", "FailedAttachVolume", "q")
    assert event["message"] == 'Multi-Attach error for volume "v" Volume is already used by pod(s) p'
    await cluster.of("", "v1", "pods").delete("default", "p", grace_seconds=0)
    await cluster.wait_gone(attachments, "", name)
    assert await attachments.get("", "theirs"), "what others have attached is none of our business"


async def test_attribute_classes_in_use_are_kept(cluster: Volumes) -> None:
    classes = cluster.of("storage.k8s.io", "v1", "volumeattributesclasses")
    await classes.create({"metadata": {"name": "gold"}, "driverName": "d.example.com", "parameters": {"a": "b"}})
    await cluster.wait(classes, "", "gold", lambda obj: obj["metadata"].get("finalizers"))
    csi = {"driver": "d.example.com", "volumeHandle": "h"}
    await cluster.volume("v", csi=csi, volumeAttributesClassName="gold", storageClassName="fast")
    await cluster.volume_in("v", "Available")
    await classes.delete("", "gold")
    await cluster.of("", "v1", "persistentvolumes").delete("", "v")
    await cluster.wait_gone(classes, "", "gold")


async def test_a_claim_that_grows_is_left_to_others(cluster: Volumes) -> None:
    await cluster.storage_class("fast", provisioner="d.example.com", allowVolumeExpansion=True)
    await cluster.volume("v", csi={"driver": "d.example.com", "volumeHandle": "h"}, storageClassName="fast")
    await cluster.claim("c", storageClassName="fast", volumeName="v")
    await cluster.claim_in("c", "Bound")
    claims = cluster.of("", "v1", "persistentvolumeclaims")
    await claims.patch("default", "c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    event = await cluster.wait_event("default", "ExternalExpanding", "c")
    assert event["message"] == "waiting for an external controller to expand this PVC"
    with pytest.raises(errors.StatusError):
        await claims.patch("default", "c", {"spec": {"volumeName": "other"}})
