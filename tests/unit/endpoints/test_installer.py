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


@pytest.mark.parametrize(("served", "kept"), [(None, ["first", "second"]), (["autoscaling/v2"], ["second"])])
def test_managers_of_versions_that_are_not_served_are_forgotten(served: list[str] | None, kept: list[str]) -> None:
    versions = None if served is None else frozenset(map(parse_group_version, served))
    live = manager("autoscaling/v1").update(
        None, autoscaler("autoscaling/v1", scaleTargetRef=TARGET, maxReplicas=5), "first", NOW
    )
    scalers = row("autoscaling/v2", "horizontalpodautoscalers")
    shown = {**live, "apiVersion": "autoscaling/v2"}
    changed = {**shown, "spec": {**shown["spec"], "minReplicas": 2}}
    tracked = make_field_manager(scalers, "", Strategy(), versions).update(shown, changed, "second", NOW)
    assert [entry["manager"] for entry in tracked["metadata"]["managedFields"]] == kept


def test_a_manager_of_a_version_that_is_none_stops_tracking() -> None:
    live = autoscaler("autoscaling/v2", scaleTargetRef=TARGET, maxReplicas=5)
    live["metadata"]["managedFields"] = [
        {"manager": "odd", "operation": "Update", "apiVersion": "a/b/c", "fieldsType": "FieldsV1", "fieldsV1": {}}
    ]
    changed = autoscaler("autoscaling/v2", scaleTargetRef=TARGET, maxReplicas=6)
    tracked = manager("autoscaling/v2").update(live, changed, "second", NOW)
    assert tracked["metadata"]["managedFields"] == live["metadata"]["managedFields"]
    with pytest.raises(StatusError, match="unexpected GroupVersion string: a/b/c"):
        manager("autoscaling/v2").apply(live, autoscaler("autoscaling/v2"), "third", force=True, now=NOW)
