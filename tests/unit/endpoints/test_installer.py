"""Ownership at an endpoint: managers that wrote another version of the same object keep what they own."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.resources import Resource, table, versions_of
from pilothouse.apis.strategy import Strategy
from pilothouse.endpoints.installer import make_field_manager
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.gvk import parse_group_version

NOW = "2024-01-01T00:00:00Z"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}


def row(version: str, name: str) -> Resource:
    return next(each for each in table()[parse_group_version(version)].resources if each.name == name)


def manager(version: str) -> FieldManager:
    return make_field_manager(row(version, "horizontalpodautoscalers"), "", Strategy())


def autoscaler(version: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "uid": "u"}
    return {"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("version", "name", "versions"),
    [
        ("autoscaling/v1", "horizontalpodautoscalers", ["autoscaling/v2", "autoscaling/v1"]),
        ("events.k8s.io/v1", "events", ["v1", "events.k8s.io/v1"]),
        ("v1", "pods", ["v1"]),
    ],
)
def test_versions_of_a_resource(version: str, name: str, versions: list[str]) -> None:
    assert [str(each.group_version) for each in versions_of(row(version, name))] == versions


def test_managers_of_another_version_keep_their_fields() -> None:
    live = manager("autoscaling/v2").update(
        None, autoscaler("autoscaling/v2", scaleTargetRef=TARGET, maxReplicas=5), "first", NOW
    )
    shown = {**live, "apiVersion": "autoscaling/v1"}
    patch = autoscaler("autoscaling/v1", scaleTargetRef=TARGET, maxReplicas=7)
    patch["metadata"] = {"name": "a"}
    with pytest.raises(StatusError) as caught:
        manager("autoscaling/v1").apply(shown, patch, "second", force=False, now=NOW)
    why = 'Apply failed with 1 conflict: conflict with "first" using autoscaling/v2: .spec.maxReplicas'
    assert caught.value.message == why
    forced = manager("autoscaling/v1").apply(shown, patch, "second", force=True, now=NOW)
    owners = {(e["manager"], e["apiVersion"]): e["fieldsV1"]["f:spec"] for e in forced["metadata"]["managedFields"]}
    assert owners == {
        ("second", "autoscaling/v1"): {"f:maxReplicas": {}, "f:scaleTargetRef": {}},
        ("first", "autoscaling/v2"): {"f:scaleTargetRef": {"f:apiVersion": {}, "f:kind": {}, "f:name": {}}},
    }
