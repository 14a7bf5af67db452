"""Taking fields out of a value, or keeping only them.

Values are rebuilt along the paths of the set and shared everywhere else. What loses its last field or item becomes
null, as in kube-apiserver; decoding by schema drops it afterwards.
"""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.machinery.structured.descriptions import step_of, to_field_set
from pilothouse.machinery.structured.field_sets import FieldSet, children, from_paths, has, is_member, paths_of, union
from pilothouse.machinery.structured.shapes import ListShape, MapShape, Shape


def remove_items(shape: Shape, value: Any, fields: FieldSet) -> Any:
    """The value without the fields of the set."""
    return _cut(shape, value, fields, keep=False)


def extract_items(shape: Shape, value: Any, fields: FieldSet, *, with_keys: bool = False) -> Any:
    """The fields of the set out of the value; with the key fields of the list items on the way, if wanted."""
    if with_keys:
        fields = union(fields, _key_fields(shape, value, fields))
    return _cut(shape, value, fields, keep=True)


def _key_fields(shape: Shape, value: Any, fields: FieldSet) -> FieldSet:
    present = to_field_set(shape, value)
    found: FieldSet = {}
    for path in paths_of(fields):
        if not has(present, path):
            continue
        for depth, step in enumerate(path):
            if step.startswith("k:"):
                for name in orjson.loads(step[2:]):
                    found = union(found, from_paths((*path[: depth + 1], "f:" + name)))
    return found


def _cut(shape: Shape, value: Any, fields: FieldSet, *, keep: bool) -> Any:
    if value.__class__ is dict and shape.map is not None:
        return _cut_map(shape.map, value, fields, keep)
    if value.__class__ is list and shape.items is not None:
        return _cut_list(shape.items, value, fields, keep)
    return value if shape.scalar else None


def _cut_map(shape: MapShape, value: dict[str, Any], fields: FieldSet, keep: bool) -> Any:
    if not value or shape.atomic:
        return value if keep else None
    out: dict[str, Any] = {}
    for key, item in value.items():
        node = fields.get("f:" + key)
        inner = shape.field(key)
        if node is None:
            if not keep:
                out[key] = item
        elif not node or inner is None or (is_member(node) and not keep):
            if keep:
                out[key] = item
        else:
            out[key] = _cut(inner, item, children(node), keep=keep)
    return out or None


def _cut_list(items: ListShape, value: list[Any], fields: FieldSet, keep: bool) -> Any:
    if not value or items.atomic:
        return value if keep else None
    out: list[Any] = []
    for item in value:
        node = fields.get(step_of(items, item))
        if node is None:
            if not keep:
                out.append(item)
            continue
        if is_member(node) and not keep:
            continue
        below = children(node)
        out.append(_cut(items.item, item, below, keep=keep) if below else item)
    return out or None
