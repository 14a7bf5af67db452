"""What a schema does not know is dropped, named, and never comes back."""

from __future__ import annotations

import copy

import pytest

from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.apis.apiextensions.schema.pruning import drop_nulls, prune, prune_value

STRING = {"type": "string"}
KEEP = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def fields(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "obj", "left", "dropped"),
    [
        (fields(), {"a": 1}, {}, ["a"]),
        (fields(), {"kind": "K", "apiVersion": "v", "metadata": {"zz": 1}}, None, []),
        (
            fields(spec=fields(a=STRING)),
            {"spec": {"a": "x", "b": 1, "c": 2}},
            {"spec": {"a": "x"}},
            ["spec.b", "spec.c"],
        ),
        (fields(spec=KEEP), {"spec": {"b": {"c": [1]}}}, None, []),
        (
            fields(spec={**KEEP, "properties": {"known": fields(x=STRING)}}),
            {"spec": {"known": {"x": "1", "y": 2}, "other": {"z": 1}}},
            {"spec": {"known": {"x": "1"}, "other": {"z": 1}}},
            ["spec.known.y"],
        ),
        (
            fields(list={"type": "array", "items": fields(a=STRING)}),
            {"list": [{"a": "x"}, {"b": 1}, 5, None]},
            {"list": [{"a": "x"}, {}, 5, None]},
            ["list[1].b"],
        ),
        (
            fields(map={"type": "object", "additionalProperties": fields(v=STRING)}),
            {"map": {"k": {"v": "x", "w": 1}}},
            {"map": {"k": {"v": "x"}}},
            ["map.k.w"],
        ),
        # Anything is allowed there, but nothing is known about it.
        (
            fields(map={"type": "object", "additionalProperties": True}),
            {"map": {"k": {"v": 1}, "n": 1}},
            {"map": {"k": {}, "n": 1}},
            ["map.k.v"],
        ),
        (
            fields(pod={**fields(x=STRING), "x-kubernetes-embedded-resource": True}),
            {"pod": {"kind": "P", "apiVersion": "v1", "metadata": {"a": 1}, "x": "1", "y": 2}},
            {"pod": {"kind": "P", "apiVersion": "v1", "metadata": {"a": 1}, "x": "1"}},
            ["pod.y"],
        ),
        (KEEP, {"anything": {"goes": 1}}, None, []),
    ],
)
def test_unknown_fields_go(schema, obj, left, dropped):
    expected = copy.deepcopy(obj) if left is None else left
    assert prune(obj, Node(schema)) == dropped
    assert obj == expected
    assert prune(obj, Node(schema)) == []


def test_values_without_a_schema_lose_everything_inside():
    value = [{"a": 1}, [{"b": 2}]]
    assert prune_value(value, None) == ["[0].a", "[1][0].b"]
    assert value == [{}, [{}]]


@pytest.mark.parametrize(
    ("schema", "obj", "left"),
    [
        (fields(a=STRING), {"a": None}, {}),
        (fields(a={**STRING, "nullable": True}), {"a": None}, {"a": None}),
        (fields(a={**STRING, "default": "x"}), {"a": None}, {"a": None}),
        (KEEP, {"a": None}, {"a": None}),
        (
            fields(list={"type": "array", "items": fields(a=STRING)}),
            {"list": [{"a": None}, None]},
            {"list": [{}, None]},
        ),
        ({"type": "object", "additionalProperties": STRING}, {"a": None, "b": "x"}, {"b": "x"}),
    ],
)
def test_nulls_go_where_they_may_not_be(schema, obj, left):
    drop_nulls(obj, Node(schema))
    assert obj == left
