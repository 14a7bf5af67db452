from __future__ import annotations

import pytest

from pilothouse.machinery.ratcheting import CorrelatedObject, OldItems

ITEM = {"type": "object", "properties": {"name": {"type": "string"}, "port": {}, "value": {}}}
BY_NAME = {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
BY_BOTH = {**BY_NAME, "x-kubernetes-list-map-keys": ["name", "port"]}
ATOMIC = {"type": "array", "items": ITEM}


@pytest.mark.parametrize(
    ("schema", "old", "item", "expected"),
    [
        (BY_NAME, [{"name": "a", "value": 1}, {"name": "b", "value": 2}], {"name": "b"}, {"name": "b", "value": 2}),
        (BY_NAME, [{"name": "a", "value": 1}, {"name": "a", "value": 2}], {"name": "a"}, {"name": "a", "value": 1}),
        (BY_NAME, [{"name": "a"}], {"name": "b"}, None),
        (BY_NAME, [{"value": 1}], {"value": 1}, None),
        (BY_NAME, [{"name": None}], {"name": None}, None),
        (BY_NAME, [{"name": {}}], {"name": {}}, None),
        (BY_NAME, ["a"], "a", None),
        (BY_NAME, None, {"name": "a"}, None),
        (BY_BOTH, [{"name": "a", "port": 1}], {"name": "a", "port": 1}, {"name": "a", "port": 1}),
        (BY_BOTH, [{"name": "a", "port": 1}], {"name": "a", "port": 1.0}, None),
        (BY_BOTH, [{"name": "a", "port": 1}], {"name": "a", "port": True}, None),
        (BY_BOTH, [{"name": "a"}], {"name": "a"}, None),
        (ATOMIC, [{"name": "a"}], {"name": "a"}, None),
    ],
)
def test_items_belong_together_by_their_keys(schema, old, item, expected):
    assert OldItems(schema, old).get(item) == expected


@pytest.mark.parametrize(
    ("schema", "old", "new", "expected"),
    [
        ({}, None, None, True),
        ({}, None, 0, False),
        ({}, 1, 1, True),
        ({}, 1, 1.0, False),
        ({}, 1, True, False),
        ({}, [], {}, False),
        ({"properties": {"a": {}}}, {"a": 1}, {"a": 1}, True),
        ({"properties": {"a": {}}}, {"a": 1}, {"a": 2}, False),
        ({"properties": {"a": {}}}, {"b": 1}, {"b": 1}, False),
        ({"additionalProperties": {}}, {"b": 1}, {"b": 1}, True),
        ({"additionalProperties": True}, {"b": 1}, {"b": 1}, False),
        (ATOMIC, [{"x": 1, "y": 2}], [{"y": 2, "x": 1}], True),
        (ATOMIC, [1, 2], [2, 1], False),
        (BY_NAME, [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], True),
        (BY_NAME, [{"name": "a"}], [{"name": "a", "value": 1}], False),
        (BY_NAME, [{"name": "a"}], [{"name": "a"}, {"name": "a"}], False),
        (BY_NAME, [{"value": 1}], [{"value": 1}], False),
        (BY_NAME, [], [], True),
    ],
)
def test_what_counts_as_unchanged(schema, old, new, expected):
    assert CorrelatedObject(new, old, schema).is_unchanged() is expected
