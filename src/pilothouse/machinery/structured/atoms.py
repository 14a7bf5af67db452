"""Objects as field management compares them: in lists that are owned as a whole, empty is not the same as not given.

kube-apiserver compares such lists as they are in memory, where an empty list or map differs from none, though both are
stored alike. Everything else it compares as it would be written. So whoever sends an object with empty fields inside
such a list owns that list from then on, whatever else it has in common with the stored one.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.schema.emptied import Emptied, plain_fields
from pilothouse.machinery.structured.shapes import UNTYPED_ATOMIC, Shape


def as_compared(shape: Shape, obj: dict[str, Any]) -> dict[str, Any]:
    """A copy without notes of what was given as empty, but for atomic lists: in those it is there."""
    made: dict[str, Any] = _compared(shape, obj)
    return made


def _compared(shape: Shape, value: Any) -> Any:
    if isinstance(value, dict):
        of = shape.map
        if of is None or of.atomic:
            fields = {key: _compared(UNTYPED_ATOMIC, item) for key, item in value.items()}
        else:
            fields = {key: _compared(of.field(key) or UNTYPED_ATOMIC, item) for key, item in value.items()}
        return plain_fields(value, fields)
    if isinstance(value, list):
        if shape.items is None or shape.items.atomic:
            return [_as_given(item) for item in value]
        item_shape = shape.items.item
        return [_compared(item_shape, item) for item in value]
    return value


def _as_given(value: Any) -> Any:
    """A copy with all that was given as empty."""
    if isinstance(value, dict):
        given = {key: _as_given(item) for key, item in value.items()}
        return given | value.empty if isinstance(value, Emptied) else given
    return [_as_given(item) for item in value] if isinstance(value, list) else value
