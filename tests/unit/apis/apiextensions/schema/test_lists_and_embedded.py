"""Sets, maps written as lists, and objects within objects."""

from __future__ import annotations

import pytest

from pilothouse.apis.apiextensions.schema import embedded
from pilothouse.apis.apiextensions.schema.list_types import check_lists
from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.machinery.schema.decoding import DecodeError

SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {}}
MAP = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object"},
}
MAP2 = {**MAP, "x-kubernetes-list-map-keys": ["p", "k"]}
POD = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (SET, ["a", "b"], []),
        (SET, ["a", "b", "a", "a"], ['l[2]: Duplicate value: "a"']),
        (SET, [1, True, 1.0], []),
        (SET, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], ['l[1]: Duplicate value: {"a":1,"b":2}']),
        (MAP, [{"k": "x"}, {"k": "y"}], []),
        (MAP, [{"k": "x"}, {"k": "x", "v": 1}], ['l[1]: Duplicate value: {"k":"x"}']),
        (MAP, [{}, None], ["l[1]: Duplicate value: {}"]),
        (MAP, ["x"], ['l[0]: Invalid value: "x": must be an object for an array of list-type map']),
        (MAP2, [{"k": "x", "p": 1}, {"k": "x", "p": 2}], []),
        (MAP2, [{"k": "x", "p": 1}, {"k": "x", "p": 1}], ['l[1]: Duplicate value: {"k":"x","p":1}']),
    ],
)
def test_lists(schema, value, expected):
    node = Node({"type": "object", "properties": {"l": schema}})
    assert [str(error) for error in check_lists({"l": value}, node)] == expected


def test_metadata_of_embedded_objects_is_coerced():
    node = Node({"type": "object", "properties": {"pod": POD}})
    obj = {"pod": {"kind": "P", "apiVersion": "v1", "metadata": {"name": "a", "zzz": 1, "creationTimestamp": None}}}
    dropped: list[str] = []
    embedded.coerce(obj, node, None, dropped)
    assert obj["pod"]["metadata"] == {"name": "a"}
    assert dropped == ["pod.metadata.zzz"]


@pytest.mark.parametrize(
    ("pod", "part"),
    [
        ({"kind": 5}, "pod.kind: Invalid value: 5: must be a string"),
        ({"metadata": {"name": 5}}, "pod.metadata: Invalid value"),
        ({"metadata": "x"}, "cannot unmarshal string"),
    ],
)
def test_embedded_objects_that_cannot_be_read(pod, part):
    node = Node({"type": "object", "properties": {"pod": POD}})
    with pytest.raises(DecodeError) as caught:
        embedded.coerce({"pod": pod}, node, None, [])
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"kind": "P", "apiVersion": "v1"}, []),
        ({}, ["pod.apiVersion: Required value", "pod.kind: Required value"]),
        (
            {"kind": "", "apiVersion": ""},
            ['pod.apiVersion: Invalid value: "": must not be empty', 'pod.kind: Invalid value: "": must not be empty'],
        ),
        (
            {"kind": "P", "apiVersion": "a/b/c"},
            ['pod.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
    ],
)
def test_errors_of_embedded_objects(pod, expected):
    errs = []
    embedded.check({"pod": pod}, Node({"type": "object", "properties": {"pod": POD}}), None, errs)
    assert [str(error) for error in errs] == expected


def test_stored_metadata_that_does_not_fit_is_left_out():
    assert embedded.lenient_metadata({"name": "a", "labels": 5, "uid": "u"}) == {"name": "a", "uid": "u"}
    assert embedded.lenient_metadata("x") == {}


def test_refused_metadata_is_shown_with_its_keys_in_order() -> None:
    node = Node({"type": "object", "x-kubernetes-embedded-resource": True})
    with pytest.raises(DecodeError) as caught:
        embedded.coerce({"metadata": {"name": "a", "labels": {"a": {}}}}, node, None, [])
    assert '{"labels":{"a":{}},"name":"a"}' in str(caught.value)
