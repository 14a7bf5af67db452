"""Bodies that come again and again are answered as if each were the first."""

from __future__ import annotations

import json
from typing import Any

import pytest

DEFAULT = "/api/v1/namespaces/default"
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "again-", "labels": {"app": "again"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "again-"}, "data": {"a": "1"}}
DRAWN = ("name", "uid", "resourceVersion", "creationTimestamp")


def without_drawn(obj: dict[str, Any]) -> str:
    for key in DRAWN:
        assert obj["metadata"].pop(key)
    for entry in obj["metadata"]["managedFields"]:
        assert entry.pop("time")
    text = json.dumps(obj)
    for volume in obj.get("spec", {}).get("volumes", ()):
        text = text.replace(volume["name"], "drawn")
    return text


@pytest.mark.parametrize(("plural", "body"), [("pods", POD), ("configmaps", MAP)])
def test_objects_of_one_template_differ_in_nothing_else(server, plural, body):
    if plural == "pods":
        server.call("POST", f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "default"}})
    answers = [server.call("POST", f"{DEFAULT}/{plural}", body) for _ in range(4)]
    assert [code for code, _, _ in answers] == [201] * 4
    names = {obj["metadata"]["name"] for _, _, obj in answers}
    uids = {obj["metadata"]["uid"] for _, _, obj in answers}
    assert (len(names), len(uids)) == (4, 4)
    assert len({without_drawn(obj) for _, _, obj in answers}) == 1


def test_owners_of_fields_are_those_who_created(server):
    for manager in ("one", "two", "one"):
        _, _, made = server.call("POST", f"{DEFAULT}/configmaps?fieldManager={manager}", MAP)
        assert [entry["manager"] for entry in made["metadata"]["managedFields"]] == [manager]


def test_every_one_is_warned_of_and_refused(server):
    odd = {**MAP, "unheard": 1}
    for _ in range(4):
        code, headers, _ = server.call("POST", f"{DEFAULT}/configmaps", odd)
        assert code == 201
        assert headers["warning"] == '299 - "unknown field \\"unheard\\""'
        assert server.call("POST", f"{DEFAULT}/configmaps?fieldValidation=Strict", odd)[0] == 400
        assert server.call("POST", f"{DEFAULT}/configmaps?fieldValidation=Ignore", odd)[0] == 201


def test_in_another_namespace_it_is_another_object(server):
    server.namespace("again-elsewhere")
    for namespace in ("default", "again-elsewhere", "default"):
        _, _, made = server.call("POST", f"/api/v1/namespaces/{namespace}/configmaps", MAP)
        assert made["metadata"]["namespace"] == namespace
