"""Bodies of which parts are as they are stored: what is decoded is the same, and less is looked at."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.as_stored import AsStored, is_same, mark, unmark
from pilothouse.machinery.schema.decoding import DecodeError, decode

POD = types.struct("core.v1.Pod")
DEPLOYMENT = types.struct("apps.v1.Deployment")
ENTRY = {
    "manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2024-01-01T00:00:01Z", "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {}},
}  # fmt: skip
CONTAINER = {"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]}
STORED: dict[str, Any] = decode(
    POD,
    {
        "metadata": {"name": "p", "managedFields": [ENTRY]},
        "spec": {"containers": [CONTAINER], "hostNetwork": True, "priority": 1},
        "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]},
    },
)[0]


def changed(change: dict[str, Any], part: str) -> dict[str, Any]:
    body = copy.deepcopy(STORED)
    body[part] = {**body[part], **change}
    return body


BODIES = {
    "the same": STORED,
    "another status": changed({"phase": "Running"}, "status"),
    "another spec": changed({"priority": 2}, "spec"),
    "an unknown field": changed({"unheard": 1}, "spec"),
    "something empty": changed({"overhead": {}, "nodeSelector": None}, "spec"),
    "no owners": changed({"managedFields": []}, "metadata"),
    "another order": {**STORED, "spec": dict(reversed(STORED["spec"].items()))},
    "no spec": {key: value for key, value in STORED.items() if key != "spec"},
}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_decoded_is_the_same(name: str) -> None:
    body = BODIES[name]
    plain, plain_unknown = decode(POD, copy.deepcopy(body), noting=True, owned=True)
    given = copy.deepcopy(body)
    found, unknown = decode(POD, given, noting=True, owned=True, stored=STORED)
    assert (orjson.dumps(found), found.__class__, unknown) == (orjson.dumps(plain), plain.__class__, plain_unknown)
    assert AsStored not in {part.__class__ for part in (*given.values(), *given.get("metadata", {}).values())}


def test_parts_that_are_as_stored_are_not_looked_into() -> None:
    body = changed({"phase": "Running"}, "status")
    marked = mark(POD, body, STORED)
    assert [(name, part.part) for _, name, part in marked] == [
        ("spec", STORED["spec"]),
        ("managedFields", [ENTRY]),
    ]
    unmark(marked)
    assert body == changed({"phase": "Running"}, "status")


@pytest.mark.parametrize(
    ("given", "stored", "same"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 1.0}, {"a": 1}, False),
        ({"a": True, "b": 1}, {"a": 1, "b": True}, False),
        ({"a": {}}, {"a": None}, False),
        ([], None, False),
        ({"a": "\ud800"}, {"a": "\ud800"}, False),
    ],
)
def test_values_are_the_same_as_json(given: Any, stored: Any, same: bool) -> None:
    assert is_same(given, stored) is same


def test_wrong_types_that_python_takes_for_equal_are_refused() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    stored = decode(DEPLOYMENT, {"metadata": {"name": "d"}, "spec": spec})[0]
    body = {"metadata": {"name": "d"}, "spec": {**stored["spec"], "replicas": True}}
    assert body["spec"] == stored["spec"]
    with pytest.raises(DecodeError, match="cannot unmarshal bool"):
        decode(DEPLOYMENT, body, owned=True, stored=stored)
    assert body["spec"]["replicas"] is True


def test_of_what_is_not_owned_only_the_very_owners_that_are_stored_are_taken_over() -> None:
    patched = {**STORED, "status": {"phase": "Running"}}
    found, _ = decode(POD, patched, stored=STORED)
    assert found["metadata"]["managedFields"] is STORED["metadata"]["managedFields"]
    assert found["spec"] == STORED["spec"]
    assert found["spec"] is not STORED["spec"]
    assert patched["metadata"] is STORED["metadata"]
    assert patched["metadata"]["managedFields"][0] == ENTRY
    others, _ = decode(POD, copy.deepcopy(patched), stored=STORED)
    assert others["metadata"]["managedFields"][0] is not STORED["metadata"]["managedFields"][0]
