"""Structs that remember which of their fields the client gave as empty.

Go tells an empty list from none until the object is written: both are left out then. Objects here never hold what is
left out, so decoding a body drops empty lists, maps and bytes. A struct that lost some is an ``Emptied``: a dict like
any other, equal to one without, that knows what it lost. The few rules that ask, and messages that show a refused
struct, ask ``given``; everybody else notices nothing.

The notes go with the struct itself, through lists, defaults and conversion. Writing the object as JSON and reading it
again forgets them, as in kube-apiserver. An object with notes anywhere in it is an ``Emptied`` at its root, so that one
look tells. Storage, webhooks and policies get objects without; for field management see ``structured/atoms.py``.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.schema.types import ListOf, MapOf, Struct, Type


class Emptied(dict[str, Any]):
    """A struct, and its fields that were given as empty."""

    __slots__ = ("empty",)

    def __init__(self, fields: dict[str, Any], empty: dict[str, Any] | None = None) -> None:
        super().__init__(fields)
        self.empty: dict[str, Any] = {} if empty is None else empty

    def copy(self) -> Emptied:
        """A shallow copy, which remembers as well."""
        return Emptied(self, dict(self.empty))


def note_empty(struct: dict[str, Any], name: str, value: Any) -> Emptied:
    """The struct, with a note that a field was given with this empty value."""
    noted = struct if isinstance(struct, Emptied) else Emptied(struct)
    noted.empty[name] = value
    return noted


def as_given(struct: dict[str, Any], name: str) -> Any:
    """A field's value, be it an empty one; None where it was not given."""
    value = struct.get(name)
    return struct.empty.get(name) if value is None and isinstance(struct, Emptied) else value


def unset(struct: dict[str, Any], name: str) -> None:
    """Take a field out, and what is remembered of it."""
    struct.pop(name, None)
    if isinstance(struct, Emptied):
        struct.empty.pop(name, None)


def has_emptied(value: Any, *, but_bytes: bool = False) -> bool:
    """Whether anything in there was given as empty, or anything but bytes, which storage gives back as they came."""
    if isinstance(value, dict):
        if isinstance(value, Emptied) and any(
            value.get(name) is None and not (but_bytes and given == "") for name, given in value.empty.items()
        ):
            return True
        return any(has_emptied(item, but_bytes=but_bytes) for item in value.values() if isinstance(item, dict | list))
    return isinstance(value, list) and any(has_emptied(item, but_bytes=but_bytes) for item in value)


def like(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """An object made from parts of another, with its notes."""
    return Emptied(new, old.empty) if isinstance(old, Emptied) and not isinstance(new, Emptied) else new


def without_notes(obj: dict[str, Any]) -> dict[str, Any]:
    """The object as others see it; a copy if it had notes. What is written even when empty is there."""
    return _plain(obj) if isinstance(obj, Emptied) else obj


def plain_fields(struct: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Fields made from those of a struct, with what is written even when it is empty."""
    if isinstance(struct, Emptied):
        fields.update((key, item) for key, item in struct.empty.items() if key in fields and fields[key] is None)
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return plain_fields(value, {key: _plain(item) for key, item in value.items()})
    return [_plain(item) for item in value] if isinstance(value, list) else value


def forget(value: Any) -> None:
    """Drop all notes of an object, in place."""
    if isinstance(value, Emptied):
        value.empty = {}
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            if isinstance(item, Emptied):
                item = value[key] = dict(item)
            forget(item)


def note_always_written(kind: Type, value: Any) -> Any:
    """Empty lists that are written nevertheless, turned into null with a note: they are equal to none.

    Containers on the way to a change are copied, all others shared.
    """
    if isinstance(kind, Struct) and isinstance(value, dict):
        return _note_struct(kind, value)
    if isinstance(kind, ListOf) and isinstance(value, list):
        items = [note_always_written(kind.item, item) for item in value]
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    if isinstance(kind, MapOf) and isinstance(value, dict):
        entries = {key: note_always_written(kind.value, item) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


def _note_struct(struct: Struct, value: dict[str, Any]) -> dict[str, Any]:
    for name, item in list(value.items()):
        field = struct.fields.get(name)
        if field is None:
            continue
        if item == [] and isinstance(field.type, ListOf) and not field.pointer:
            value = note_empty(value, name, [])
            value[name] = None
        elif item:
            noted = note_always_written(field.type, item)
            if noted is not item:
                value[name] = noted
    return value
