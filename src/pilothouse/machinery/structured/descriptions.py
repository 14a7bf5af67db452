"""The fields that a value has.

Two questions look alike and are not. ``to_field_set`` asks what an applied configuration claims: its leaves, list items
and map entries, but not the structs that merely lead there. ``describe`` asks what appears when a value is added where
there was none: everything, the structs on the way included. The second runs on every create, so it is one
closure per shape, built at first use; the sets come out in stored order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.machinery import piecewise
from pilothouse.machinery.structured.field_sets import FieldSet, in_order
from pilothouse.machinery.structured.paths import key_step, name_step, value_step
from pilothouse.machinery.structured.shapes import ListShape, MapShape, Shape

_ALONE: Final = 2
"""The length of a set that has its place and one field."""
_MOST_KEYS: Final = 32
_SHORT: Final = 64
_MOST_SHARED: Final = 1024
_MOST_OUTLINES: Final = 128
_LEAF: Final[FieldSet] = {}
"""One for all: nodes are never changed, and a map of 100,000 keys has as many."""


class StepError(ValueError):
    """A list item that cannot be told apart from others; the text says why."""


def step_of(items: ListShape, item: Any) -> str:
    """The step to an item of a list that is not atomic."""
    if items.atomic:
        raise StepError("invalid indexing of non-associative list")
    if not items.keys:
        return _member_step(item)
    if item.__class__ is not dict:
        kind = "a null element" if item is None else "non-map elements"
        raise StepError(f"associative list with keys may not have {kind}")
    if len(items.keys) == 1:
        only = item.get(items.keys[0])
        if only.__class__ is str:
            return name_step(items.keys[0], only)
    found = []
    for name, default in items.key_fields:
        if name in item:
            found.append((name, item[name]))
        elif default is not None:
            found.append((name, default))
    if not found:
        names = "[" + " ".join(f'"{name}"' for name in items.keys) + "]"
        raise StepError(
            f"associative list with keys has an element that omits all key fields {names}"
            " (and doesn't have default values for any key fields)"
        )
    return key_step(found)


def _member_step(item: Any) -> str:
    if item.__class__ is dict:
        raise StepError("associative list without keys has an element that's a map type")
    if item.__class__ is list:
        raise StepError("not supported: associative list with lists as elements")
    if item is None:
        raise StepError("associative list without keys has an element that's an explicit null")
    return value_step(item)


def to_field_set(shape: Shape, value: Any) -> FieldSet:
    """What a configuration claims. The value is valid for the shape."""
    claimed = _claim(shape, value)
    return _LEAF if claimed is None else claimed


def _claim(shape: Shape, value: Any) -> FieldSet | None:
    """The node of a value, None where nothing is claimed by it alone. An empty node is a claim."""
    if value.__class__ is list and shape.items is not None:
        return _claim_items(shape.items, value)
    if value.__class__ is dict and shape.map is not None:
        return _claim_map(shape.map, value)
    return _LEAF


def _claim_items(items: ListShape, value: list[Any]) -> FieldSet | None:
    if items.atomic:
        return _LEAF
    steps = [step_of(items, item) for item in value]
    out: FieldSet = {}
    for step, item in zip(steps, value, strict=True):
        if step in out:
            # Several items under one key are owned together, as one leaf.
            out[step] = _LEAF
            continue
        below = _claim(items.item, item)
        out[step] = _member(below) if below else _LEAF
    return in_order(out) or None


def _member(below: FieldSet) -> FieldSet:
    """A node that belongs to the set itself, with what is below it."""
    if len(below) == 1:
        return _member_with(*next(iter(below.items())))
    return {".": _LEAF, **below}


_shared: Final[dict[tuple[str, int], FieldSet]] = {}
"""Nodes with one child, which is a leaf or one of these again, by the step to it and its identity."""
_shared_ids: Final[set[int]] = set()


def _member_with(step: str, child: FieldSet) -> FieldSet:
    """The same with one child: one node for all, where maps in maps have the same keys over and over."""
    key = step, id(child)
    node = _shared.get(key)
    if node is None:
        node = {".": _LEAF, step: child}
        if len(step) < _SHORT and (child is _LEAF or id(child) in _shared_ids):
            if len(_shared) >= _MOST_SHARED:
                _shared_ids.clear()
                _shared.clear()
            _shared[key] = node
            _shared_ids.add(id(node))
    return node


def _claim_map(shape: MapShape, value: dict[str, Any]) -> FieldSet | None:
    if shape.atomic:
        return _LEAF
    out: FieldSet = {}
    named = shape.fields
    # Of a long map the set is made in its order, not made and copied.
    for key in value if len(value) <= _MOST_KEYS else piecewise.in_order(list(value)):
        item = value[key]
        if item is None or (item.__class__ is dict and not item):
            out["f:" + key] = _LEAF
            continue
        inner = named.get(key) or shape.element
        below = _claim(inner, item) if inner is not None else _LEAF
        if key not in named:
            out["f:" + key] = _member(below) if below else _LEAF
        elif below is not None:
            out["f:" + key] = below
    return in_order(out) or None


def describe(shape: Shape, value: Any) -> FieldSet:
    """Everything that appears with a value: the node of its place, membership of the place included."""
    return (shape.description or description(shape))(value)


Description = Callable[[Any], FieldSet]


def description(shape: Shape) -> Description:
    """The describing function of a shape, built once."""
    if shape.description is None:
        shape.description = _build(shape)
    return shape.description


def _build(shape: Shape) -> Description:
    if shape.map is not None and not shape.scalar and shape.items is None:
        return _map_description(shape.map)
    if shape.items is not None and not shape.scalar and shape.map is None:
        return _list_description(shape.items)
    if shape.map is None and shape.items is None:
        return _leaf

    of_map = _map_description(shape.map) if shape.map is not None else _leaf
    of_list = _list_description(shape.items) if shape.items is not None else _leaf

    def describe_any(value: Any) -> FieldSet:
        if value.__class__ is dict:
            return of_map(value)
        return of_list(value) if value.__class__ is list else _LEAF

    return describe_any


def _leaf(value: Any) -> FieldSet:
    return _LEAF


def _unless_leaf(described: Description) -> Description | None:
    return None if described is _leaf else described


def _map_description(shape: MapShape) -> Description:
    if shape.atomic:
        return _leaf
    known: dict[tuple[str, ...], tuple[FieldSet, list[tuple[str, str, Description]]]] = {}

    def describe_map(value: Any) -> FieldSet:
        if not value or value.__class__ is not dict:
            return _LEAF
        if len(value) > _MOST_KEYS:
            return _describe_long(shape, value)
        keys = tuple(value)
        outline = known.get(keys)
        if outline is None:
            if len(known) >= _MOST_OUTLINES:
                known.clear()
            outline = known[keys] = _outline(shape, keys)
        flat, nested = outline
        out = flat
        for key, step, described in nested:
            if below := described(value[key]):
                if len(flat) == _ALONE:
                    return _member_with(step, below)
                if out is flat:
                    out = flat.copy()
                out[step] = below
        return out

    return describe_map


def _outline(shape: MapShape, keys: tuple[str, ...]) -> tuple[FieldSet, list[tuple[str, str, Description]]]:
    """What all maps with these keys have in common: their set but for what is below some keys, and those keys.

    Objects of a kind have few combinations of keys between them, and most keys have nothing below.
    """
    flat: FieldSet = {".": _LEAF}
    nested: list[tuple[str, str, Description]] = []
    for key in sorted(keys):
        flat["f:" + key] = _LEAF
        inner = shape.field(key)
        described = None if inner is None else _unless_leaf(description(inner))
        if described is not None:
            nested.append((key, "f:" + key, described))
    return flat, nested


def _describe_long(shape: MapShape, value: dict[str, Any]) -> FieldSet:
    """What a map of many keys has, which is hardly ever that of another: nothing is made but the set."""
    found: FieldSet = {".": _LEAF}
    for key in piecewise.in_order(list(value)):
        inner = shape.field(key)
        found["f:" + key] = _LEAF if inner is None else describe(inner, value[key])
    return found


def _list_description(items: ListShape) -> Description:
    if items.atomic:
        return _leaf

    def describe_list(value: Any) -> FieldSet:
        if not value or value.__class__ is not list:
            return _LEAF
        described = description(items.item)
        found: FieldSet = {}
        for item in value:
            step = step_of(items, item)
            found[step] = _LEAF if step in found else described(item)
        return {".": _LEAF, **in_order(found)}

    return describe_list
