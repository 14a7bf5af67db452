"""Which of several errors of a request is told, and how."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

MERGE, STRATEGIC, JSON_PATCH = (f"application/{kind}-patch+json" for kind in ("merge", "strategic-merge", "json"))
PATH = "/api/v1/namespaces/default/configmaps"
LATER = "resourceVersion=99999999"


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("limit=x&labelSelector=,", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("limit=x&timeoutSeconds=y", 400, 'strconv.ParseInt: parsing "y": invalid syntax'),
        ("fieldSelector=a&labelSelector=a b", 400, "unable to parse requirement: found 'b', expected: in, notin,"),
        ("fieldSelector=nope%3D1&resourceVersionMatch=Exact", 422, 'ListOptions.meta.k8s.io "" is invalid: '),
        ("fieldSelector=nope%3D1", 400, '"nope" is not a known field selector: only "metadata.name"'),
        ("watch=1&continue=a", 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '),
        ("watch=1&resourceVersion=0&continue=a", 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: '),
    ],
)
def test_lists(pilothouse_server: InProcessServer, query: str, status: int, message: str) -> None:
    answer = pilothouse_server.call("GET", f"{PATH}?{query.replace(' ', '%20')}", None, None)
    assert answer.status == status
    assert answer.json["message"].startswith(message)


def test_a_watch_may_wait_for_a_version_to_come(pilothouse_server: InProcessServer) -> None:
    answer = pilothouse_server.call("GET", f"{PATH}?watch=1&timeoutSeconds=1&{LATER}", None, None)
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("kind", "patch", "status", "message"),
    [
        (MERGE, {}, 404, 'configmaps "none" not found'),
        (JSON_PATCH, 1, 404, 'configmaps "none" not found'),
        (STRATEGIC, [], 404, 'configmaps "none" not found'),
        (MERGE, b"{", 400, "invalid JSON patch"),
    ],
)
def test_patches_of_nothing(
    pilothouse_server: InProcessServer, kind: str, patch: Any, status: int, message: str
) -> None:
    answer = pilothouse_server.call("PATCH", f"{PATH}/none", patch, {"Content-Type": kind})
    assert (answer.status, answer.json["message"]) == (status, message)


@pytest.mark.parametrize(
    ("kind", "patch", "status", "message"),
    [
        (JSON_PATCH, [{"op": 1}], 400,
         "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        (JSON_PATCH, [5], 400,
         "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (JSON_PATCH, None, 200, None),
        (STRATEGIC, None, 200, None),
        (MERGE, None, 400, "Invalid JSON Patch"),
        (MERGE, {"kind": ""}, 200, None),
        (MERGE, {"apiVersion": None}, 400,
         "the name of the object (a based on URL) was undeterminable: name must be provided"),
        (STRATEGIC, {"data": {"x": 1}}, 422,
         ' "" is invalid: patch: Invalid value: "map[data:map[x:1]]": cannot convert int64 to string'),
        (STRATEGIC, {"data": {"x": True}, "metadata": {"$retainKeys": ["name"]}}, 422,
         ' "" is invalid: patch: Invalid value: "map[data:map[x:true] metadata:map[]]": unrecognized type: string'),
    ],
)  # fmt: skip
def test_patches(
    pilothouse_server: InProcessServer,
    pilothouse_namespace: str,
    kind: str,
    patch: Any,
    status: int,
    message: str | None,
) -> None:
    path = f"/api/v1/namespaces/{pilothouse_namespace}/configmaps"
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    assert pilothouse_server.call("POST", path, made, None).status == 201
    body = b"null" if patch is None else patch
    answer = pilothouse_server.call("PATCH", f"{path}/a", body, {"Content-Type": kind})
    assert (answer.status, answer.json.get("message")) == (status, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "Foo"}, 'no kind "Foo" is registered for version "meta.k8s.io/v1" in scheme '),
        (
            [],
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct {",
        ),
    ],
)
def test_deletions(pilothouse_server: InProcessServer, body: Any, message: str) -> None:
    answer = pilothouse_server.call("DELETE", f"{PATH}/none", body, {"Content-Type": "application/json"})
    assert answer.status == 400
    assert answer.json["message"].startswith(message)


@pytest.mark.parametrize(
    "path", ["/api/v1/namespaces/default/namespaces", "/api/v1/namespaces/a/namespaces/b", "/api/v1/proxy/namespaces/x"]
)
def test_paths_of_nothing(pilothouse_server: InProcessServer, path: str) -> None:
    assert pilothouse_server.call("GET", path, None, None).status == 404


def test_exports(pilothouse_server: InProcessServer) -> None:
    answer = pilothouse_server.call("GET", f"{PATH}/none?export=true", None, None)
    assert (answer.status, answer.json["message"]) == (
        400,
        "the export parameter, deprecated since v1.14, is no longer supported",
    )


def test_who_takes_no_form_gets_an_indented_one(pilothouse_server: InProcessServer) -> None:
    answer = pilothouse_server.call("GET", PATH, None, {"Accept": "text/html"})
    assert answer.status == 406
    assert answer.body.startswith(b'{\n  "kind": "Status",\n')


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/api/v1/namespaces/default/services/none/status", ("v1", "Service"), 422),
        ("/api/v1/namespaces/default/pods/none/status", ("v1", "Pod"), 404),
        ("/apis/apps/v1/namespaces/default/deployments/none/status", ("apps/v1", "Deployment"), 404),
    ],
)
def test_applying_the_status_of_nothing(
    pilothouse_server: InProcessServer, path: str, kind: tuple[str, str], status: int
) -> None:
    """Services are created by whatever is written to them; this one lacks its ports."""
    patch = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": "none"}, "status": {}}
    headers = {"Content-Type": "application/apply-patch+yaml"}
    assert pilothouse_server.call("PATCH", f"{path}?fieldManager=m", patch, headers).status == status


HPA = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}}
WRONG_VERSION = "the API version in the data ({}) does not match the expected API version ({})"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("autoscaling/v2", {**HPA, "spec": {"x": 1}},
         'HorizontalPodAutoscaler in version "v1" cannot be handled as a HorizontalPodAutoscaler: strict decoding error'
         ': unknown field "spec.x"'),
        ("autoscaling/v2", {**HPA, "spec": {"targetCPUUtilizationPercentage": 1}},
         WRONG_VERSION.format("autoscaling/v1", "autoscaling/v2")),
        ("autoscaling/v2", {**HPA, "metadata": {"name": 1}},
         'HorizontalPodAutoscaler in version "v1" cannot be handled as a HorizontalPodAutoscaler: json: cannot '
         "unmarshal number into Go struct field ObjectMeta.metadata.name of type string"),
        ("autoscaling/v2", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "x"}},
         'Deployment in version "v1" cannot be handled as a HorizontalPodAutoscaler: json: cannot unmarshal string into'
         " Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("autoscaling/v2", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"x": 1}},
         'Deployment in version "v1" cannot be handled as a HorizontalPodAutoscaler: converting (v1.Deployment) to '
         "(autoscaling.HorizontalPodAutoscaler): unknown conversion"),
        ("events.k8s.io/v1", {"apiVersion": "v1", "kind": "Event"}, WRONG_VERSION.format("v1", "events.k8s.io/v1")),
    ],
)  # fmt: skip
def test_bodies_of_another_version_are_read_as_what_they_are(
    pilothouse_server: InProcessServer, path: str, body: dict[str, Any], message: str
) -> None:
    plural = "events" if "events" in path else "horizontalpodautoscalers"
    target = f"/apis/{path}/namespaces/default/{plural}?fieldValidation=Strict"
    answer = pilothouse_server.call("POST", target, body, None)
    assert (answer.status, answer.json["message"]) == (400, message)
