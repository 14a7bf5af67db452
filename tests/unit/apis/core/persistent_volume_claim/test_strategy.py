"""Persistent volume claims."""

from __future__ import annotations

from typing import Any

import pytest

CLAIM: dict[str, Any] = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def spec(base: dict[str, Any], **changes: Any) -> dict[str, Any]:
    merged = {**base["spec"], **changes}
    return {"spec": {key: value for key, value in merged.items() if value is not None}}


def test_a_new_claim(kind: Any) -> None:
    made = kind("v1", "persistentvolumeclaims").create(CLAIM)
    assert made["status"] == {"phase": "Pending"}
    assert made["spec"]["volumeMode"] == "Filesystem"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            {"dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}},
            {
                "dataSource": {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "x"},
                "dataSourceRef": {"apiGroup": None, "kind": "PersistentVolumeClaim", "name": "x"},
            },
        ),
        ({"dataSource": {"apiGroup": "a.b", "kind": "K", "name": "x"}}, {}),
        (
            {"dataSourceRef": {"apiGroup": "a.b", "kind": "K", "name": "x"}},
            {
                "dataSource": {"apiGroup": "a.b", "kind": "K", "name": "x"},
                "dataSourceRef": {"apiGroup": "a.b", "kind": "K", "name": "x"},
            },
        ),
        ({"dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "x", "namespace": "other"}}, {}),
    ],
)
def test_data_sources(kind: Any, given: dict[str, Any], wanted: dict[str, Any]) -> None:
    made = kind("v1", "persistentvolumeclaims").create(spec(CLAIM, **given))
    assert {key: made["spec"][key] for key in ("dataSource", "dataSourceRef") if key in made["spec"]} == wanted


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"accessModes": None}, ["spec.accessModes: Required value: at least 1 access mode is required"]),
        ({"resources": None}, ["spec.resources[storage]: Required value"]),
        (
            {"resources": {"requests": {"storage": "0"}}},
            ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
        ),
        (
            {"volumeMode": "Tape"},
            ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
        ),
        (
            {
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
                "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "y"},
            },
            ["spec: Invalid value: {}: must match dataSourceRef"],
        ),
    ],
)
def test_claim_errors(kind: Any, changes: dict[str, Any], wanted: list[str]) -> None:
    assert kind("v1", "persistentvolumeclaims").errors(spec(CLAIM, **changes)) == wanted


def test_a_bound_claim_may_grow_and_a_pending_one_may_not(kind: Any) -> None:
    claims = kind("v1", "persistentvolumeclaims")
    pending = claims.create(CLAIM)
    bigger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    [error] = claims.errors(bigger, pending)
    assert error.startswith("spec: Forbidden: spec is immutable after creation except resources.requests")
    bound = {**pending, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert claims.errors(bigger, bound) == []
    smaller = {"spec": {"resources": {"requests": {"storage": "1Mi"}}}}
    assert claims.errors(smaller, bound) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    assert claims.errors({"spec": {"volumeName": "v", "storageClassName": "s"}}, pending) == []
    same_amount = {"spec": {"resources": {"requests": {"storage": "1073741824"}}}}
    assert claims.errors(same_amount, pending) == []


def test_claim_status_errors(kind: Any) -> None:
    claims = kind("v1", "persistentvolumeclaims")
    status = {
        "capacity": {"storage": "-1"},
        "allocatedResourceStatuses": {"cpu": "Odd"},
        "allocatedResources": {"memory": "1"},
    }
    assert claims.errors({"status": status}, claims.create(CLAIM), "status") == [
        "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
        'status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"',
        'status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "ControllerResizeInProgress", '
        '"ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"',
        'status.allocatedResources: Unsupported value: "memory": supported values: "storage"',
    ]


def test_fractional_bytes_warn(kind: Any) -> None:
    claims = kind("v1", "persistentvolumeclaims")
    claims.create(spec(CLAIM, resources={"requests": {"storage": "1500m"}}))
    assert claims.warnings == [
        'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer'
    ]
