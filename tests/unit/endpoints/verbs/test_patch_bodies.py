"""What patches of any form and any media type are answered with."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer

MERGE, STRATEGIC, JSON_PATCH = (f"application/{kind}-patch+json" for kind in ("merge", "strategic-merge", "json"))
APPLY = "application/apply-patch+yaml"
LISTED = (
    "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "
)
NO_OBJECT = "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct {"


@pytest.fixture
def path(pilothouse_server: InProcessServer, pilothouse_namespace: str) -> str:
    path = f"/api/v1/namespaces/{pilothouse_namespace}/configmaps"
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}}
    assert pilothouse_server.call("POST", path, made, None).status == 201
    return f"{path}/a"


@pytest.mark.parametrize(
    ("kind", "body", "status", "message"),
    [
        (JSON_PATCH, b"{}", 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        (JSON_PATCH, b"[{},1]", 400, "json: cannot unmarshal number into Patch.1 of type jsonpatch.Operation"),
        (JSON_PATCH, b'[{"op":"replace","path":"","value":[]}]', 422, NO_OBJECT),
        (MERGE, b"[]", 422, NO_OBJECT),
        (MERGE, b'[{"a":null}]', 422, r'"[{}]\": ' + NO_OBJECT),
        (MERGE, b'"x"', 400, "Invalid JSON Patch"),
        (MERGE, b"null", 400, "Invalid JSON Patch"),
        (STRATEGIC, b"[]", 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (APPLY, b"{", 400, "error decoding patch: error converting YAML to JSON: yaml: line 1: did not find expected"),
        (APPLY, b"[", 400, "error encoding patch: yaml: line 1: did not find expected node content"),
        (APPLY, b"[]", 400, "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot "),
    ],
)
def test_unvalidated_bodies(
    pilothouse_server: InProcessServer, path: str, kind: str, body: bytes, status: int, message: str
) -> None:
    query = "?fieldValidation=Ignore&fieldManager=m"
    answer = pilothouse_server.call("PATCH", path + query, body, {"Content-Type": kind})
    assert answer.status == status
    assert message.replace("\\", "") in answer.json["message"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON_PATCH, b'[{"op":"add","path":"/data/b","value":"\\ud800"}]'),
        (MERGE, b'{"data":{"b":"\xe9"}}'),
        (STRATEGIC, b'{"data":{"b":"\\udc00"}}'),
    ],
)
def test_what_is_no_character_becomes_a_replacement(
    pilothouse_server: InProcessServer, path: str, kind: str, body: bytes
) -> None:
    answer = pilothouse_server.call("PATCH", path, body, {"Content-Type": kind})
    assert (answer.status, answer.json["data"]) == (200, {"a": "1", "b": "\ufffd"})


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        (f"{MERGE};charset=utf-8", 200, None),
        (f"{MERGE} ; x", 415, LISTED),
        (f"{JSON_PATCH},{MERGE}", 415, LISTED),
        ("application/apply-patch+cbor", 415, "415: Unsupported Media Type"),
        ("application/json", 415, "415: Unsupported Media Type"),
    ],
)
def test_media_types(pilothouse_server: InProcessServer, path: str, kind: str, status: int, message: Any) -> None:
    answer = pilothouse_server.call("PATCH", path, b"{}", {"Content-Type": kind})
    assert answer.status == status
    assert message is None or answer.json["message"].startswith(message)


@pytest.mark.parametrize("key", ["selfLink", "resourceVersion"])
def test_dry_runs_keep_what_storing_would_take(pilothouse_server: InProcessServer, path: str, key: str) -> None:
    name = "a" if key == "selfLink" else "b"
    patch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, key: "7"}}
    target = path.removesuffix("a") + name + "?fieldManager=m"
    answer = pilothouse_server.call("PATCH", f"{target}&dryRun=All", patch, {"Content-Type": APPLY})
    assert answer.json["metadata"][key] == "7"
    answer = pilothouse_server.call("PATCH", target, patch, {"Content-Type": APPLY})
    assert answer.json["metadata"].get(key) != "7"


@pytest.mark.parametrize(("query", "key"), [("", "/registry/configmaps/"), ("?dryRun=All", " /configmaps/")])
def test_places_in_refusals(pilothouse_server: InProcessServer, path: str, query: str, key: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "other"}}
    answer = pilothouse_server.call("PUT", path + query, body, None)
    assert answer.status == 409
    assert key in answer.json["message"]


def test_owners_are_merged_before_anything_is_missed(pilothouse_server: InProcessServer, path: str) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "none", "ownerReferences": [owner] * 2}}
    place = path.replace("/api/v1", "/apis/apps/v1").removesuffix("configmaps/a")
    answer = pilothouse_server.call("PUT", f"{place}deployments/none", body, None)
    assert answer.status == 404
    assert "duplicate UID(s) observed: u" in answer.headers["warning"]


@pytest.mark.parametrize(
    ("method", "metadata", "message"),
    [
        ("PUT", {"namespace": "other"}, "the namespace of the provided object does not match"),
        ("PUT", {"name": "b", "namespace": "other"}, "the namespace of the provided object does not match"),
        ("PUT", {}, "the name of the object (a based on URL) was undeterminable: name must be provided"),
        ("PATCH", {"name": None, "namespace": "other"}, "the namespace of the provided object does not match"),
    ],
)
def test_wrong_names_and_namespaces(
    pilothouse_server: InProcessServer, path: str, method: str, metadata: dict[str, Any], message: str
) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    headers = {"Content-Type": MERGE if method == "PATCH" else "application/json"}
    answer = pilothouse_server.call(method, path, body, headers)
    assert (answer.status, answer.json["message"][: len(message)]) == (400, message)


@pytest.mark.parametrize(
    ("value", "status", "message"),
    [
        ({"name": "b"}, 400, "the name of the object (b) does not match the name on the URL (a)"),
        ({"name": "a", "data": {}}, 422, 'strict decoding error: unknown field "data"'),
        ({"kind": "Pod"}, 422, 'no kind "Pod" is registered for the internal version of group "" in scheme '),
        ({"name": "a", "labels": {"b": "c"}}, 200, ""),
    ],
)
def test_results_without_a_version_have_metadata_at_the_top(
    pilothouse_server: InProcessServer, path: str, value: dict[str, Any], status: int, message: str
) -> None:
    patch = [{"op": "replace", "path": "", "value": value}]
    answer = pilothouse_server.call("PATCH", f"{path}?fieldValidation=Strict", patch, {"Content-Type": JSON_PATCH})
    assert answer.status == status
    assert message in answer.json.get("message", "")
    if status == 200:
        assert (answer.json["metadata"]["labels"], "data" in answer.json) == ({"b": "c"}, False)


def test_errors_of_a_result_without_kind_come_in_key_order(pilothouse_server: InProcessServer, path: str) -> None:
    patch = {"kind": None, "immutable": 5, "data": {"b": 1}}
    answer = pilothouse_server.call("PATCH", path, patch, {"Content-Type": MERGE})
    assert answer.json["message"].endswith("unmarshal number into Go struct field ConfigMap.data of type string")


def test_results_are_shown_escaped(pilothouse_server: InProcessServer, path: str) -> None:
    patch = {"data": {"a": "<&>"}, "immutable": 5}
    answer = pilothouse_server.call("PATCH", path, patch, {"Content-Type": MERGE})
    assert r"\\u003c\\u0026\\u003e" in answer.json["message"]
