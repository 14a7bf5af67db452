"""Persistent volumes."""

from __future__ import annotations

from typing import Any

import pytest

VOLUME: dict[str, Any] = {
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
}


def spec(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    merged = {**base["spec"], **changes}
    return {"spec": {key: value for key, value in merged.items() if value is not None}}


def test_a_new_volume(kind: Any) -> None:
    made = kind("v1", "persistentvolumes").create(VOLUME)
    assert made["status"] == {"phase": "Pending", "lastPhaseTransitionTime": "2026-01-02T03:04:05Z"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["spec"]["hostPath"] == {"path": "/x", "type": ""}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"capacity": None}, 2),
        ({"capacity": {"cpu": "1"}}, ['spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"']),
        (
            {"capacity": {"storage": "1", "cpu": "1"}},
            ['spec.capacity: Unsupported value: {"cpu":"1","storage":"1"}: supported values: "storage"'],
        ),
        ({"accessModes": None}, ["spec.accessModes: Required value"]),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        ),
        ({"hostPath": None}, ["spec: Required value: must specify a volume type"]),
        (
            {"nfs": {"server": "s", "path": "/"}},
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
        ),
        ({"hostPath": {"path": "/a/../b"}}, ["spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"]),
        (
            {"hostPath": {"path": "/"}, "persistentVolumeReclaimPolicy": "Recycle"},
            ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        ),
        (
            {"hostPath": None, "local": {"path": "/x"}},
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
        ),
        (
            {"hostPath": None, "csi": {"driver": "", "volumeHandle": ""}},
            ["spec.csi.driver: Required value", "spec.csi.volumeHandle: Required value"],
        ),
        (
            {"volumeAttributesClassName": "x"},
            ["spec.csi: Required value: has to be specified when using volumeAttributesClassName"],
        ),
        (
            {"hostPath": None, "iscsi": {"targetPortal": "p", "iqn": "x", "lun": 300}},
            [
                'spec.iscsi.iqn: Invalid value: "x": must be valid format',
                "spec.iscsi.lun: Invalid value: 300: must be between 0 and 255, inclusive",
            ],
        ),
    ],
)
def test_volume_errors(kind: Any, changes: dict[str, Any], wanted: Any) -> None:
    found = kind("v1", "persistentvolumes").errors(spec(VOLUME, **changes))
    assert (len(found) if isinstance(wanted, int) else found) == wanted


def test_a_volume_keeps_its_source(kind: Any) -> None:
    volumes = kind("v1", "persistentvolumes")
    stored = volumes.create(VOLUME)
    [error] = volumes.errors({"spec": {"hostPath": {"path": "/y"}}}, stored)
    assert error == (
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
        '@@ -2,7 +2,7 @@\n  "GCEPersistentDisk": null,\n  "AWSElasticBlockStore": null,\n  "HostPath": {\n'
        '-  "Path": "/x",\n+  "Path": "/y",\n   "Type": ""\n  },\n  "Glusterfs": null,\n'
    )
    assert volumes.errors({"spec": {"volumeMode": "Block"}}, stored) == [
        'volumeMode: Invalid value: "Block": field is immutable'
    ]
    assert volumes.errors({"spec": {"capacity": {"storage": "2Gi"}}}, stored) == []


def test_affinity_may_only_take_up_stable_labels(kind: Any) -> None:
    volumes = kind("v1", "persistentvolumes")

    def affinity(key: str) -> dict[str, Any]:
        expression = {"key": key, "operator": "In", "values": ["a"]}
        return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}

    stored = volumes.create(spec(VOLUME, **affinity("failure-domain.beta.kubernetes.io/zone")))
    assert volumes.warnings == [
        "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: "
        'failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ]
    assert volumes.errors({"spec": affinity("topology.kubernetes.io/zone")}, stored) == []
    [error] = volumes.errors({"spec": affinity("x")}, stored)
    assert error.endswith(": field is immutable, except for updating from beta label to GA")


def test_phase_changes_are_timed(kind: Any) -> None:
    volumes = kind("v1", "persistentvolumes")
    stored = volumes.create(VOLUME)
    stored["status"]["lastPhaseTransitionTime"] = "2020-01-01T00:00:00Z"
    same = volumes.update(stored, {"status": {"reason": "x", "lastPhaseTransitionTime": None}}, "status")
    assert same["status"]["lastPhaseTransitionTime"] == "2020-01-01T00:00:00Z"
    changed = volumes.update(stored, {"status": {"phase": "Available"}}, "status")
    assert changed["status"]["lastPhaseTransitionTime"] == "2026-01-02T03:04:05Z"
