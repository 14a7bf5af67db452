"""Going through all schemas in a schema, without recursion: authors may nest them as deep as they like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]


def subschemas(schema: Any) -> Iterator[Schema]:
    """The schema itself and every one below it."""
    return (each for each, _ in _walk(schema))


def depth_of(schema: Any) -> int:
    """How deep schemas are nested; 1 for one without others."""
    return max((depth for _, depth in _walk(schema)), default=0)


def _walk(schema: Any) -> Iterator[tuple[Schema, int]]:
    waiting = [(schema, 1)]
    while waiting:
        each, depth = waiting.pop()
        if not isinstance(each, dict):
            continue
        yield each, depth
        below: list[Any] = []
        for key in ("items", "not", "additionalProperties", "additionalItems"):
            found = each.get(key)
            below += found if isinstance(found, list) else [found]
        for key in ("allOf", "anyOf", "oneOf"):
            below += each.get(key) or ()
        for key in ("properties", "patternProperties", "definitions", "dependencies"):
            below += (each.get(key) or {}).values()
        waiting += ((child, depth + 1) for child in reversed(below))
