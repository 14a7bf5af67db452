"""What changed between two values: the sets of fields added, modified and removed.

Equal parts are recognised by one comparison in C and never looked into, so the cost is that of what changed. Items of
lists with keys are compared with their namesakes wherever they stand; several items under one key are compared as one
leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from pilothouse.machinery.structured.descriptions import describe, description, step_of
from pilothouse.machinery.structured.field_sets import FieldSet, in_order, union
from pilothouse.machinery.structured.shapes import ListShape, MapShape, Shape, is_open
from pilothouse.machinery.workers import ABANDONED, checkpoint


@dataclass(slots=True)
class Comparison:
    """Three sets without a path in common."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def is_same(self) -> bool:
        return not (self.removed or self.modified or self.added)

    @property
    def changed(self) -> FieldSet:
        """What the newer value has that the older one had not, or had otherwise."""
        return union(self.modified, self.added)


def compare(shape: Shape, old: Any, new: Any) -> Comparison:
    """Compare two values of one shape."""
    found = _Found()
    _compare(shape, old, new, found)
    return Comparison(in_order(found.removed), in_order(found.modified), in_order(found.added))


class _Found:
    """The three sets below one place; ``leaf`` says that the place itself was modified."""

    __slots__ = ("added", "leaf", "modified", "removed")

    def __init__(self) -> None:
        self.removed: FieldSet = {}
        self.modified: FieldSet = {}
        self.added: FieldSet = {}
        self.leaf = False


def same(shape: Shape, old: Any, new: Any) -> bool:
    """Whether two values are equal, as JSON: ``true`` is not 1 there."""
    if old is new:
        return True
    if old != new or old.__class__ is bool or new.__class__ is bool:
        return old is new
    return not is_open(shape) or _canonical(old) == _canonical(new)


def _canonical(value: Any) -> bytes | str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return repr(value)


def _compare(shape: Shape, old: Any, new: Any, found: _Found) -> None:
    if ABANDONED:
        checkpoint()
    if same(shape, old, new):
        return
    if shape.map is not None and old.__class__ is dict and new.__class__ is dict:
        _compare_maps(shape.map, old, new, found)
        return
    old_part, new_part = _part(shape, old), _part(shape, new)
    if old_part == new_part:
        _compare_part(shape, new_part, old, new, found)
        return
    # The kind of value changed: what was inside is gone, what is inside is new, and the place was modified.
    _compare_part(shape, old_part, old, None, found)
    _compare_part(shape, new_part, None, new, found)
    if "scalar" in (old_part, new_part) or old is None or new is None:
        found.leaf = True


def _part(shape: Shape, value: Any) -> str:
    """Which of a shape's parts a value belongs to."""
    if value.__class__ is dict and shape.map is not None:
        return "map"
    if value.__class__ is list and shape.items is not None:
        return "list"
    if value is not None and value.__class__ not in (dict, list) and shape.scalar:
        return "scalar"
    return "map" if shape.map is not None else "scalar" if shape.scalar else "list"


def _compare_part(shape: Shape, part: str, old: Any, new: Any, found: _Found) -> None:
    if part == "map" and shape.map is not None:
        _compare_maps(shape.map, old if old.__class__ is dict else None, new if new.__class__ is dict else None, found)
    elif part == "list" and shape.items is not None:
        _compare_lists(
            shape.items, old if old.__class__ is list else None, new if new.__class__ is list else None, found
        )
    else:
        found.leaf = True


def _compare_maps(shape: MapShape, old: dict[str, Any] | None, new: dict[str, Any] | None, found: _Found) -> None:
    if shape.atomic or not (old or new):
        found.leaf = True
        return
    old, new = old or {}, new or {}
    fields, element = shape.fields, shape.element
    for key, value in old.items():
        other = new.get(key, _ABSENT)
        if value is other:
            continue
        if other is _ABSENT:
            inner = fields.get(key) or element
            found.removed["f:" + key] = {} if inner is None else describe(inner, value)
        elif value.__class__ is not str or value != other:
            _descend(fields.get(key) or element, "f:" + key, value, other, found)
    for key, value in new.items():
        if key not in old:
            inner = fields.get(key) or element
            found.added["f:" + key] = {} if inner is None else (inner.description or description(inner))(value)


_ABSENT: Final = object()


def _descend(shape: Shape | None, step: str, old: Any, new: Any, found: _Found) -> None:
    if shape is None:
        return
    if shape.map is None and shape.items is None and old.__class__ is str and new.__class__ is str:
        if old != new:
            found.modified[step] = {}
        return
    below = _Found()
    _compare(shape, old, new, below)
    if below.removed:
        found.removed[step] = in_order(below.removed)
    if below.added:
        found.added[step] = in_order(below.added)
    if below.modified or below.leaf:
        modified = in_order(below.modified)
        found.modified[step] = {".": {}, **modified} if below.leaf and modified else modified


def _compare_lists(items: ListShape, old: list[Any] | None, new: list[Any] | None, found: _Found) -> None:
    if items.atomic or not (old or new):
        found.leaf = True
        return
    before, after = _by_step(items, old or []), _by_step(items, new or [])
    for step, mine in before.items():
        others = after.get(step, ())
        if len(mine) == 1 and len(others) == 1:
            _descend(items.item, step, mine[0], others[0], found)
        elif len(mine) == 1:
            found.removed[step] = describe(items.item, mine[0])
        elif len(others) > 1:
            if mine != others:
                found.modified[step] = {}
        else:
            found.removed[step] = {}
        if len(mine) > 1 and len(others) == 1:
            found.added[step] = describe(items.item, others[0])
        elif len(mine) == 1 and len(others) > 1:
            found.added[step] = {}
    for step, others in after.items():
        if step not in before:
            found.added[step] = describe(items.item, others[0]) if len(others) == 1 else {}


def _by_step(items: ListShape, values: list[Any]) -> dict[str, Sequence[Any]]:
    """The items of each step. Nearly always that is one, which in a tuple takes half as much room as in a list."""
    found: dict[str, Sequence[Any]] = {}
    for value in values:
        step = step_of(items, value)
        several = found.get(step)
        if several is None:
            found[step] = (value,)
        elif isinstance(several, list):
            several.append(value)
        else:
            found[step] = [*several, value]
    return found
