"""Field sets seen through a schema: closing them over named fields, and following changes of list and map types."""

from __future__ import annotations

from pilothouse.machinery.structured.field_sets import FieldSet
from pilothouse.machinery.structured.shapes import DEDUCED, MapShape, Shape


def with_named_fields(fields: FieldSet, shape: Shape | None) -> FieldSet:
    """The set with every named field of a struct that leads to a member made a member too."""
    mapping = shape.map if shape is not None else None
    out: FieldSet = {}
    for step, node in fields.items():
        if not node:
            out[step] = node
            continue
        inner = None
        named = False
        if step.startswith("f:") and mapping is not None:
            inner = mapping.field(step[2:])
            named = step[2:] in mapping.fields
        elif step.startswith("k:") and shape is not None and shape.items is not None:
            inner = shape.items.item
        below = with_named_fields(node, inner)
        out[step] = {".": {}, **below} if named and "." not in below else below
    return out


def reconcile(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set as it is under today's schema: below what has become atomic, nothing is owned by itself.

    Usually nothing changed; then the very same set comes back.
    """
    out: FieldSet | None = None
    for step, node in fields.items():
        inner = _inner(shape, step) if node and step != "." else None
        if inner is None:
            continue
        changed = {} if _is_atomic(inner) else reconcile(node, inner)
        if changed is not node:
            out = dict(fields) if out is None else out
            out[step] = changed
    return fields if out is None else out


def _inner(shape: Shape, step: str) -> Shape | None:
    if shape.map is not None:
        if _is_free(shape.map):
            return None
        return shape.map.field(step[2:]) if step.startswith("f:") else shape.map.element
    return shape.items.item if shape.items is not None else None


def _is_free(shape: MapShape) -> bool:
    return shape.element is DEDUCED and not shape.fields


def _is_atomic(shape: Shape) -> bool:
    if shape.map is not None:
        return shape.map.atomic and not _is_free(shape.map)
    return not shape.scalar and shape.items is not None and shape.items.atomic
