"""The shape of configuration files as plain data: which fields there are, and what stands in them.

A dict describes an object by its fields, or by ``"*"`` any field; a list with one item describes a list; a type (str,
bool, int) describes a value. A value of another type is an error: "false" in quotes must not count as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.machinery.go_json import json_type

_GO_TYPES = {str: "string", bool: "bool", int: "int32"}


def unknown_fields(value: Any, shape: Any, path: str = "") -> list[str]:
    """The fields that the shape does not have. Raises ``ValueError`` for a value of a wrong type."""
    return list(_walk(value, shape, path))


def without_nulls(value: Any, shape: Any) -> Any:
    """The same without nulls, as Go reads them: left out in objects, empty in lists. For what fits the shape."""
    if isinstance(value, dict) and isinstance(shape, Mapping):
        kept = ((key, item) for key, item in value.items() if item is not None)
        return {key: without_nulls(item, shape.get(key) or shape.get("*")) for key, item in kept}
    if isinstance(value, list) and isinstance(shape, list):
        return [_empty(shape[0]) if item is None else without_nulls(item, shape[0]) for item in value]
    return value


def _empty(shape: Any) -> Any:
    return shape() if isinstance(shape, type) else [] if isinstance(shape, list) else {}


def _walk(value: Any, shape: Any, path: str) -> Iterable[str]:
    if value is None:
        return
    if isinstance(shape, type):
        if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            raise _mismatch(value, path, _GO_TYPES[shape])
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise _mismatch(value, path, "[]")
        for index, item in enumerate(value):
            yield from _walk(item, shape[0], f"{path}[{index}]")
    else:
        yield from _walk_object(value, shape, path)


def _walk_object(value: Any, shape: Mapping[str, Any], path: str) -> Iterable[str]:
    if not isinstance(value, dict):
        raise _mismatch(value, path, "struct")
    for key, item in value.items():
        where = f"{path}.{key}" if path else str(key)
        inner = shape.get(key) or shape.get("*")
        if inner is None:
            yield where
        else:
            yield from _walk(item, inner, where)


def _mismatch(value: Any, path: str, wanted: str) -> ValueError:
    return ValueError(f"json: cannot unmarshal {json_type(value)} into Go struct field {path} of type {wanted}")
