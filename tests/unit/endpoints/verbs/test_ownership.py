"""What writes through several versions, managers and subresources leave in managedFields."""

from __future__ import annotations

from typing import Any

import pytest

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
def test_a_stale_version_is_told_after_other_faults(
    pilothouse_server: InProcessServer, extra: dict[str, Any], status: int, message: str
) -> None:
    path = "/api/v1/namespaces/default/configmaps/versioned?fieldManager="
    named = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "versioned"}}
    pilothouse_server.call("PATCH", path + "m1", {**named, "data": {"a": "1"}}, APPLY)
    patch = {**named, "metadata": {"name": "versioned", "resourceVersion": "1"}, **extra}
    answer = pilothouse_server.call("PATCH", path + "m2", patch, APPLY)
    assert answer.status == status
    assert answer.json["message"].startswith(message)
