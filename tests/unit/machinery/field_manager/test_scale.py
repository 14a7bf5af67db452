"""Owners of replicas, seen and taken through the scale."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.field_manager.scale import to_parent, to_scale


def entry(manager: str, operation: str = "Update", **more: Any) -> dict[str, Any]:
    made = {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    return {**made, **more}


REPLICAS = {"f:spec": {"f:replicas": {}}}


PATHS = {"apps/v1": ("f:spec", "f:replicas"), "apps/v2": None}


def test_scale_sees_owners_of_replicas() -> None:
    parent = [
        entry("a", apiVersion="apps/v1", fieldsV1={"f:spec": {"f:paused": {}, "f:replicas": {}}}, time="t"),
        entry("b", apiVersion="apps/v1", fieldsV1={"f:spec": {"f:paused": {}}}),
        entry("c", apiVersion="apps/v0", fieldsV1=REPLICAS),
    ]
    assert to_scale(parent, PATHS) == [
        {**entry("a", apiVersion="autoscaling/v1", fieldsV1=REPLICAS, time="t")},
    ]


def test_replicas_taken_through_scale() -> None:
    parent = [
        entry("a", apiVersion="apps/v1", fieldsV1={"f:spec": {"f:paused": {}, "f:replicas": {}}}, time="t"),
        entry("b", "Apply", apiVersion="apps/v1", fieldsV1=REPLICAS, time="t"),
        entry("c", apiVersion="apps/v0", fieldsV1=REPLICAS),
        entry("d", apiVersion="apps/v2", fieldsV1=REPLICAS),
    ]
    scaled = [entry("hpa", apiVersion="autoscaling/v1", fieldsV1=REPLICAS, subresource="scale", time="u")]
    written = to_parent(parent, scaled, "apps/v1", PATHS)
    assert [(e["manager"], e["apiVersion"], e["fieldsV1"], e.get("time")) for e in written] == [
        ("d", "apps/v2", REPLICAS, None),
        ("hpa", "apps/v1", REPLICAS, None),
        ("a", "apps/v1", {"f:spec": {"f:paused": {}}}, "t"),
    ]


def test_replicas_kept_through_scale() -> None:
    fields = {"f:spec": {"f:paused": {}, "f:replicas": {}}}
    parent = [entry("a", "Apply", apiVersion="apps/v1", fieldsV1=fields, time="t")]
    assert to_parent(parent, to_scale(parent, PATHS), "apps/v1", PATHS) == parent
