"""What writes through several versions, managers and subresources leave in managedFields."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.testing.definitions import DEFINITIONS, await_condition
from pilothouse.testing.in_process import InProcessServer

APPLY = {"Content-Type": "application/apply-patch+yaml"}
MERGE = {"Content-Type": "application/merge-patch+json"}
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"
EVENT = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "owned"},
    "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    "eventTime": "2020-01-01T00:00:00.000000Z",
    "reportingController": "a.io/c",
    "reportingInstance": "i",
    "action": "a",
    "reason": "r",
    "type": "Normal",
}


def managers(obj: dict[str, Any]) -> list[str]:
    return [entry["manager"] for entry in obj["metadata"].get("managedFields", [])]


def scaler(name: str) -> dict[str, Any]:
    spec = {"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_events_forget_who_wrote_them_on_the_other_side(pilothouse_server: InProcessServer) -> None:
    call = pilothouse_server.call
    grouped, legacy = (
        f"{root}/namespaces/default/events/owned?fieldManager=" for root in ("/apis/events.k8s.io/v1", "/api/v1")
    )
    assert managers(call("PATCH", grouped + "m1", EVENT, APPLY).json) == ["m1"]
    assert managers(call("PATCH", legacy + "m2", {"metadata": {"labels": {"a": "b"}}}, MERGE).json) == ["m2"]
    assert managers(call("PATCH", grouped + "m3", {"metadata": {"finalizers": None}}, MERGE).json) == []
    applied = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "owned"}, "reason": "r", "message": "x"}
    assert call("PATCH", legacy + "m4", applied, APPLY).status == 200


def test_applying_without_metadata(pilothouse_server: InProcessServer) -> None:
    maps, patch = "/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": None}
    pilothouse_server.call("POST", maps, {"metadata": {"name": "bare"}}, None)
    answer = pilothouse_server.call("PATCH", f"{maps}/bare?fieldManager=m", {**patch, "data": {"a": "b"}}, APPLY)
    assert (answer.status, "m" in managers(answer.json)) == (200, True)
    answer = pilothouse_server.call("PATCH", f"{maps}/nobody?fieldManager=m", patch, APPLY)
    why = "the name of the object (nobody based on URL) was undeterminable: name must be provided"
    assert (answer.status, answer.json["message"]) == (400, why)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_forgetting_all_managers_in_any_version(pilothouse_server: InProcessServer, version: str) -> None:
    name = f"reset-{version}"
    pilothouse_server.call("POST", SCALERS.format("v2"), scaler(name), None)
    patch = {"metadata": {"managedFields": []}}
    answer = pilothouse_server.call("PATCH", f"{SCALERS.format(version)}/{name}", patch, MERGE)
    assert (answer.status, answer.json["metadata"].get("managedFields")) == (200, None)
    assert "managedFields" not in answer.json["metadata"]


@pytest.mark.parametrize(
    ("extra", "status", "message"),
    [
        ({"nosuch": 1}, 500, "failed to create typed patch object (/versioned; /v1, Kind=ConfigMap): .nosuch: field "),
        ({"data": {"a": "2"}}, 409, 'Apply failed with 1 conflict: conflict with "m1": .data.a'),
        ({}, 409, 'Operation cannot be fulfilled on configmaps "versioned": the object has been modified; please '),
    ],
)
def test_a_stale_version_is_told_after_other_errors(
    pilothouse_server: InProcessServer, extra: dict[str, Any], status: int, message: str
) -> None:
    path = "/api/v1/namespaces/default/configmaps/versioned?fieldManager="
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "versioned"}}
    pilothouse_server.call("PATCH", path + "m1", {**named, "data": {"a": "1"}}, APPLY)
    patch = {**named, "metadata": {"name": "versioned", "resourceVersion": "1"}, **extra}
    answer = pilothouse_server.call("PATCH", path + "m2", patch, APPLY)
    assert answer.status == status
    assert answer.json["message"].startswith(message)


def wait_for(server: InProcessServer, path: str, status: int) -> None:
    """Ask again until definitions have taken effect."""
    await_condition(lambda: server.call("GET", path).status, lambda found: found == status)


def test_a_version_of_a_custom_resource_that_is_gone_stops_tracking(pilothouse_server: InProcessServer) -> None:
    call = pilothouse_server.call
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": v, "served": True, "storage": v == "v1", "schema": schema} for v in ("v1", "v2")]
    boats = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.owned.example"},
        "spec": {
            "group": "owned.example",
            "scope": "Cluster",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": versions,
        },
    }
    pilothouse_server.establish(boats)
    first, second = (
        {"apiVersion": f"owned.example/{v}", "kind": "Boat", "metadata": {"name": "a"}, "spec": {v: 1}}
        for v in ("v1", "v2")
    )
    path = "/apis/owned.example/{}/boats/a?fieldManager="
    assert managers(call("PATCH", path.format("v2") + "m2", second, APPLY).json) == ["m2"]
    patch = {"spec": {"versions": versions[:1]}}
    assert call("PATCH", f"{DEFINITIONS}/boats.owned.example", patch, MERGE).status == 200
    wait_for(pilothouse_server, "/apis/owned.example/v2/boats", 404)
    changed = call("PATCH", path.format("v1") + "m1", {"spec": {"x": 1}}, MERGE)
    assert (changed.json["spec"]["x"], managers(changed.json)) == (1, ["m2"])
    refused = call("PATCH", path.format("v1") + "m1", first, APPLY)
    why = "request to convert CR to an invalid group/version: owned.example/v2"
    assert (refused.status, refused.json["message"]) == (500, why)
    foreign = {"metadata": {"managedFields": [{**changed.json["metadata"]["managedFields"][0], "apiVersion": "x/v1"}]}}
    assert managers(call("PATCH", path.format("v1") + "m1", foreign, MERGE).json) == ["m2"]
