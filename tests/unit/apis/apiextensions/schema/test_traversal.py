"""How much there is in a schema."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis.apiextensions.schema.traversal import has_more_than

RULES = [{"rule": "self > 0"}] * 3
NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"items": {"type": "integer"}}},
}


@pytest.mark.parametrize(
    ("schema", "weight"),
    [
        ({}, 1),
        (NESTED, 4),
        ({"type": "integer", "x-kubernetes-validations": RULES}, 7),
        ({"properties": {"a": {"x-kubernetes-validations": RULES}}}, 8),
        ({"x-kubernetes-validations": "no list"}, 1),
        (None, 0),
    ],
)
def test_schemas_and_rules_are_counted(schema: Any, weight: int) -> None:
    assert has_more_than(schema, weight - 1) is (weight > 0)
    assert not has_more_than(schema, weight)
