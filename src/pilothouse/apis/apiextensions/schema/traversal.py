"""Going through all schemas in a schema, without recursion: authors may nest them as deep as they like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pilothouse.machinery.workers import ABANDONED, checkpoint

Schema = dict[str, Any]
_MAPS: Final = frozenset({"properties", "patternProperties", "definitions", "dependencies"})
_HOLDERS: Final = _MAPS | {"items", "not", "additionalProperties", "additionalItems", "allOf", "anyOf", "oneOf"}
_RULES: Final = "x-kubernetes-validations"
_SIMPLE_TYPES: Final = frozenset({"boolean", "integer", "number", "object", "string"})
_PLAIN: Final = frozenset(
    {
        "type", "description", "format", "title", "nullable", "enum", "required", "maximum", "exclusiveMaximum",
        "minimum", "exclusiveMinimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems",
        "maxProperties", "minProperties", "externalDocs", "example",
    }
)  # fmt: skip


def subschemas(schema: Any) -> Iterator[Schema]:
    """The schema itself and every one below it."""
    return (each for each, _ in _walk(schema))


def is_plain(schema: Schema) -> bool:
    """Whether a schema says no more than a type, limits and words, as most do: no rule for schemas can refuse it."""
    return schema.get("type") in _SIMPLE_TYPES and schema.keys() <= _PLAIN and schema.__class__ is dict


def has_more_than(schema: Any, count: int) -> bool:
    """Whether there are more schemas than this in one, itself included; a rule takes as long as two of them."""
    for each, _ in _walk(schema):
        rules = each.get(_RULES)
        count -= 1 + 2 * len(rules) if isinstance(rules, list) else 1
        if count < 0:
            return True
    return False


def depth_of(schema: Any) -> int:
    """How deep schemas are nested; 1 for one without others."""
    return max((depth for _, depth in _walk(schema)), default=0)


def _walk(schema: Any) -> Iterator[tuple[Schema, int]]:
    waiting = [(schema, 1)] if isinstance(schema, dict) else []
    while waiting:
        each, depth = waiting.pop()
        if ABANDONED:
            checkpoint()
        yield each, depth
        depth += 1
        for key, below in each.items():
            if key not in _HOLDERS:
                continue
            if below.__class__ is list:
                waiting += ((child, depth) for child in reversed(below) if isinstance(child, dict))
            elif isinstance(below, dict) and key in _MAPS:
                waiting += ((child, depth) for child in reversed(below.values()) if isinstance(child, dict))
            elif isinstance(below, dict):
                waiting.append((below, depth))
