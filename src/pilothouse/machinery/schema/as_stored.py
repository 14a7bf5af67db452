"""Parts of a body that are as they are stored: whoever decodes the body need not look into them.

Who updates an object mostly sends all of it and has changed a part: a status, a spec, some metadata. What is stored was
decoded when it was written, and decoding it again gives the same. Equal parts are found by comparisons in C.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.types import Struct

_SORTED: Final = orjson.OPT_SORT_KEYS


class AsStored:
    """Stands in a body for a part that is as it is stored."""

    __slots__ = ("part",)

    def __init__(self, part: Any) -> None:
        self.part = part


Marked = list[tuple[Object, str, AsStored]]
"""Where marks were put, and for what."""


def mark(struct: Struct, value: Any, stored: Object) -> Marked:
    """Put marks for structs of the object, and the owners of its fields, that are as they are stored."""
    marked: Marked = []
    if value.__class__ is not dict:
        return marked
    for name in _structs_of(struct):
        given = value.get(name)
        if given and is_same(given, stored.get(name)):
            marked.append((value, name, AsStored(given)))
    metadata = value.get("metadata")
    if metadata.__class__ is dict:
        given = metadata.get("managedFields")
        if given and is_same(given, stored["metadata"].get("managedFields")):
            marked.append((metadata, "managedFields", AsStored(given)))
    return _put(marked)


def mark_owners(value: Any, stored: Object) -> Marked:
    """Put a mark for the owners of fields, if they are the very ones that are stored, and no equal ones."""
    metadata: Any = value.get("metadata") if value.__class__ is dict else None
    if metadata.__class__ is not dict:
        return []
    given = metadata.get("managedFields")
    if not given or given is not stored["metadata"].get("managedFields"):
        return []
    return _put([(metadata, "managedFields", AsStored(given))])


def _put(marked: Marked) -> Marked:
    for around, name, mark_of in marked:
        around[name] = mark_of
    return marked


def unmark(marked: Marked) -> None:
    """Take the marks out of a body."""
    for around, name, mark_of in marked:
        around[name] = mark_of.part


def is_same(given: Any, stored: Any) -> bool:
    """Whether two values are the same JSON, whatever the order of their keys: true and 1.0 are not 1 there."""
    if given.__class__ is not stored.__class__ or given != stored:
        return False
    try:
        written = orjson.dumps(given), orjson.dumps(stored)
        return written[0] == written[1] or orjson.dumps(given, option=_SORTED) == orjson.dumps(stored, option=_SORTED)
    except orjson.JSONEncodeError:
        return False


def _structs_of(struct: Struct) -> tuple[str, ...]:
    """The fields of an object that are structs with fields, but for its metadata."""
    found: tuple[str, ...] | None = struct.derived.get("parts")
    if found is None:
        found = struct.derived["parts"] = tuple(
            field.name
            for field in struct.fields.values()
            if isinstance(field.type, Struct) and field.type.fields and field.name != "metadata"
        )
    return found
