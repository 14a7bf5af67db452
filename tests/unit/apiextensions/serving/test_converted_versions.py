"""Writes through versions that a webhook converts: owners of fields, defaults of what is stored, what comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pilothouse.testing.in_process import InProcessServer
from pilothouse.testing.webhooks import Webhooks

_GROUP = "turned.example"
_NAMES = {"v1": "a", "v2": "b"}
_APPLY = {"Content-Type": "application/apply-patch+yaml"}
_MERGE = {"Content-Type": "application/merge-patch+json"}
Object = dict[str, Any]


def _turn(obj: Object, wanted: str) -> Object:
    """Each version has another name for the same field."""
    if (obj["metadata"].get("annotations") or {}).get("refuse") == wanted:
        raise ValueError("refused")
    spec = dict(obj.get("spec") or {})
    given, name = (_NAMES[version.rpartition("/")[2]] for version in (obj["apiVersion"], wanted))
    if given in spec:
        spec[name] = spec.pop(given)
    return {**obj, "apiVersion": wanted, "spec": spec}


def _version(name: str, fields: Object) -> Object:
    spec = {"type": "object", "properties": {**fields, "n": {"type": "integer"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": name == "v1", "schema": schema}


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessServer]:
    text = {"type": "string"}
    with InProcessServer() as made:
        webhooks = Webhooks(made)
        client = webhooks.conversion(_turn).client_config
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        spec = {
            "group": _GROUP,
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [_version("v1", {"a": {**text, "default": "x"}}), _version("v2", {"b": text})],
        }
        made.establish({"metadata": {"name": f"things.{_GROUP}"}, "spec": spec})
        yield made
        webhooks.close()


def _path(version: str, name: str = "") -> str:
    return f"/apis/{_GROUP}/{version}/things" + (f"/{name}" if name else "")


def _thing(version: str, name: str, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    metadata: Object = {"name": name} | ({} if annotations is None else {"annotations": annotations})
    return {"apiVersion": f"{_GROUP}/{version}", "kind": "Thing", "metadata": metadata, "spec": spec}


def _owned(answer: Any) -> dict[str, Object]:
    return {entry["manager"]: entry["fieldsV1"] for entry in answer.json["metadata"].get("managedFields", [])}


def test_applies_through_another_version_than_others_wrote_in(server: InProcessServer) -> None:
    assert server.call("POST", f"{_path('v1')}?fieldManager=one", _thing("v1", "applied", a="y", n=1)).status == 201
    path = f"{_path('v2', 'applied')}?fieldManager=two"
    answer = server.call("PATCH", path, _thing("v2", "applied", b="z"), _APPLY)
    assert (answer.status, answer.json["reason"]) == (409, "Conflict")
    assert 'conflict with "one" using turned.example/v1: .spec.a' in answer.json["message"]
    answer = server.call("PATCH", f"{path}&force=true", _thing("v2", "applied", b="z"), _APPLY)
    assert (answer.status, answer.json["spec"]) == (200, {"b": "z", "n": 1})
    assert _owned(answer) == {"one": {"f:spec": {".": {}, "f:n": {}}}, "two": {"f:spec": {"f:b": {}}}}


def test_updates_through_another_version_take_fields_from_others(server: InProcessServer) -> None:
    assert server.call("POST", f"{_path('v1')}?fieldManager=one", _thing("v1", "patched", a="y", n=1)).status == 201
    answer = server.call("PATCH", f"{_path('v2', 'patched')}?fieldManager=two", {"spec": {"b": "z"}}, _MERGE)
    assert _owned(answer) == {"one": {"f:spec": {".": {}, "f:n": {}}}, "two": {"f:spec": {"f:b": {}}}}


def test_what_comes_converted_gets_the_defaults_of_the_stored_version(server: InProcessServer) -> None:
    for query in ("?dryRun=All", ""):
        answer = server.call("POST", _path("v2") + query, _thing("v2", "bare", n=1))
        assert (answer.status, answer.json["spec"]) == (201, {"b": "x", "n": 1})


def test_a_name_that_is_taken_by_what_nobody_has_converted_yet(server: InProcessServer) -> None:
    assert server.call("POST", _path("v1"), _thing("v1", "taken", a="y")).status == 201
    assert server.call("POST", _path("v2"), _thing("v2", "taken", b="y")).json["reason"] == "AlreadyExists"
    refused = _thing("v2", "taken", {"refuse": f"{_GROUP}/v1"}, b="y")
    assert server.call("POST", f"{_path('v2')}?dryRun=All", refused).json["reason"] == "AlreadyExists"
    assert "conversion webhook" in server.call("POST", _path("v2"), refused).json["message"]
