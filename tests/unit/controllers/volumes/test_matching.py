from __future__ import annotations

from typing import Any

import pytest

from pilothouse.controllers.volumes.facts import claims_of_pod, default_class, is_reserved_for
from pilothouse.controllers.volumes.matching import find_volume, mismatch
from pilothouse.controllers.volumes.volume_sync import undeletable


def volume(name: str = "v", size: str = "1Gi", phase: str = "Available", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": spec.pop("labels", {})}
    if spec.pop("going", False):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def claim(size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    spec = {"resources": {"requests": {"storage": size}}, "accessModes": ["ReadWriteOnce"], **spec}
    return {"metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": spec}


RESERVED = {"namespace": "n", "name": "c"}


@pytest.mark.parametrize(
    ("volumes", "wanted", "waits", "found"),
    [
        ([], claim(), False, None),
        ([volume("a", "2Gi"), volume("b", "1Gi"), volume("c", "3Gi")], claim(), False, "b"),
        ([volume("a", "512Mi")], claim(), False, None),
        ([volume("a", phase="Bound"), volume("b", phase="Released")], claim(), False, None),
        ([volume("a", "5Gi", claimRef=RESERVED), volume("b", "1Gi")], claim(), False, "a"),
        ([volume("a", claimRef=RESERVED)], claim(), True, "a"),
        ([volume("a", claimRef={**RESERVED, "uid": "other"})], claim(), False, None),
        ([volume("a", claimRef={**RESERVED, "uid": "u"}, phase="Bound")], claim(), False, "a"),
        ([volume("a")], claim(), True, None),
        ([volume("a", storageClassName="fast")], claim(), False, None),
        ([volume("a", storageClassName="fast")], claim(storageClassName="fast"), False, "a"),
        ([volume("a")], claim(storageClassName=""), False, "a"),
        ([volume("a", volumeMode="Block")], claim(), False, None),
        ([volume("a", volumeMode="Filesystem")], claim(), False, "a"),
        ([volume("a")], claim(accessModes=["ReadWriteMany"]), False, None),
        ([volume("a", accessModes=["ReadWriteOnce", "ReadWriteMany"]), volume("b", "9Gi")], claim(), False, "b"),
        ([volume("a", labels={"x": "1"})], claim(selector={"matchLabels": {"x": "2"}}), False, None),
        ([volume("a", labels={"x": "1"})], claim(selector={"matchLabels": {"x": "1"}}), False, "a"),
        ([volume("a", going=True)], claim(), False, None),
        ([volume("a", volumeAttributesClassName="gold")], claim(), False, None),
    ],
)
def test_the_volume_of_a_claim(
    volumes: list[dict[str, Any]], wanted: dict[str, Any], waits: bool, found: str | None
) -> None:
    chosen = find_volume(wanted, volumes, waits)
    assert (chosen and chosen["metadata"]["name"]) == found


@pytest.mark.parametrize(
    ("offered", "why"),
    [
        (volume(), ""),
        (volume(going=True), 'the volume is marked for deletion "v"'),
        (volume(size="1Mi"), "requested PV is too small"),
        (volume(storageClassName="x"), "storageClassName does not match"),
        (volume(volumeAttributesClassName="x"), "volumeAttributesClassName does not match"),
        (volume(volumeMode="Block"), "incompatible volumeMode"),
        (volume(accessModes=["ReadOnlyMany"]), "incompatible accessMode"),
    ],
)
def test_why_a_volume_will_not_do(offered: dict[str, Any], why: str) -> None:
    assert mismatch(offered, claim()) == why


@pytest.mark.parametrize(
    ("spec", "annotations", "why"),
    [
        ({"hostPath": {"path": "/tmp/a"}}, {}, ""),
        ({"hostPath": {"path": "/etc"}}, {}, "host_path deleter only supports /tmp/.+ but received provided /etc"),
        ({"csi": {}}, {}, None),
        ({"nfs": {}}, {"pv.kubernetes.io/provisioned-by": "nfs.example.com"}, None),
        ({"nfs": {}}, {}, 'error getting deleter volume plugin for volume "v": no deletable volume plugin matched'),
    ],
)
def test_what_can_be_deleted(spec: dict[str, Any], annotations: dict[str, str], why: str | None) -> None:
    assert undeletable({"metadata": {"name": "v", "annotations": annotations}, "spec": spec}) == why


def test_a_reservation_without_a_uid_is_for_any_claim_of_the_name() -> None:
    assert is_reserved_for(volume(claimRef=RESERVED), claim())
    assert not is_reserved_for(volume(claimRef={**RESERVED, "name": "d"}), claim())
    assert not is_reserved_for(volume(), claim())


def test_of_default_classes_the_newest_counts() -> None:
    def storage_class(name: str, at: str, default: str = "true") -> dict[str, Any]:
        annotations = {"storageclass.kubernetes.io/is-default-class": default}
        return {"metadata": {"name": name, "creationTimestamp": at, "annotations": annotations}}

    found = default_class([storage_class("b", "2026"), storage_class("a", "2026"), storage_class("c", "2025")])
    assert found is not None and found["metadata"]["name"] == "a"
    assert default_class([storage_class("a", "2026", "false")]) is None


def test_the_claims_of_a_pod() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "b", "ephemeral": {}},
        {"name": "d", "emptyDir": {}},
    ]
    assert claims_of_pod({"metadata": {"name": "p"}, "spec": {"volumes": volumes}}) == ["c", "p-b"]
