"""Defaults fill what is missing, each object with its own copy."""

from __future__ import annotations

import pytest

from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.defaulting import fill_defaults
from pilothouse.apis.apiextensions.schema.nodes import Node

NUMBER = {"type": "integer", "default": 3}


def fields(**properties):
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "obj", "full"),
    [
        (fields(a=NUMBER), {}, {"a": 3}),
        (fields(a=NUMBER), {"a": 5}, {"a": 5}),
        (fields(a=NUMBER), {"a": None}, {"a": 3}),
        (fields(a={**NUMBER, "nullable": True}), {"a": None}, {"a": None}),
        (fields(a={**NUMBER, "default": None}), {}, {}),
        (fields(spec=fields(a=NUMBER)), {}, {}),
        (fields(spec={**fields(a=NUMBER), "default": {}}), {}, {"spec": {"a": 3}}),
        (fields(l={"type": "array", "items": fields(a=NUMBER)}), {"l": [{}, {"a": 1}]}, {"l": [{"a": 3}, {"a": 1}]}),
        (fields(l={"type": "array", "items": NUMBER}), {"l": [None, 1]}, {"l": [3, 1]}),
        (
            fields(m={"type": "object", "additionalProperties": fields(a=NUMBER)}),
            {"m": {"k": {}}},
            {"m": {"k": {"a": 3}}},
        ),
        (fields(m={"type": "object", "additionalProperties": NUMBER}), {"m": {"k": None}}, {"m": {"k": 3}}),
        (fields(spec=fields(a=NUMBER)), {"spec": "wrong type"}, {"spec": "wrong type"}),
    ],
)
def test_filling(schema, obj, full):
    node = Node(schema)
    fill_defaults(obj, node)
    assert obj == full
    fill_defaults(obj, node)
    assert obj == full


def test_objects_do_not_share_defaults():
    node = Node(fields(a={"type": "object", "default": {"b": [1]}}))
    first, second = {}, {}
    fill_defaults(first, node)
    fill_defaults(second, node)
    first["a"]["b"].append(2)
    assert second == {"a": {"b": [1]}}


def test_defaults_are_pruned_before_use():
    schema = ObjectSchema(fields(a={**fields(b={"type": "string"}), "default": {"b": "x", "c": "y"}}))
    obj = {}
    schema.default(obj)
    assert obj == {"a": {"b": "x"}}
