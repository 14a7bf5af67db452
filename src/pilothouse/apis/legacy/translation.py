"""Manifests of one version as another has them, without a server.

What the old version filled in and the new one would not is written out, so that the object stays what it was; what
nobody gave and the type alone writes is left out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from pilothouse.apis import types
from pilothouse.apis.conversion import converters_for, own_defaults
from pilothouse.apis.legacy import older
from pilothouse.apis.resources import Resource, table, versions_of
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.gvk import GroupVersion, parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError, decode

_EMPTY: tuple[Any, ...] = ({}, [], None, "")


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of an object, and what its owner should know."""

    object: Object
    notes: tuple[str, ...] = ()
    failed: bool = False


def translate(obj: Object, to: GroupVersion | None = None) -> Translation:
    """An object in another version, by default that of today; unchanged where there is nothing to do or to be done."""
    older.load()
    if obj.get("kind") == "List" and isinstance(obj.get("items"), list):
        made = [translate(item, to) for item in obj["items"]]
        notes = tuple(note for each in made for note in each.notes)
        return Translation({**obj, "items": [each.object for each in made]}, notes, any(each.failed for each in made))
    row = _row_of(obj)
    if row is None:
        return Translation(obj)
    target = _successor(row) if to is None else _at(row, to)
    if target is None:
        why = "has no successor" if to is None else f"has no version {to}"
        return Translation(obj, (f"{_named(obj)} {why}",))
    if target is row:
        return Translation(obj)
    try:
        return Translation(_converted(obj, row, target))
    except (DecodeError, StatusError) as error:
        return Translation(obj, (f"{_named(obj)} cannot be converted: {error}",), failed=True)


def _named(obj: Object) -> str:
    metadata = obj.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    return f"{obj['apiVersion']} {obj['kind']} {name}".strip()


def _row_of(obj: Object) -> Resource | None:
    """The row of a built-in kind; None for custom resources and what is no object."""
    if not isinstance(obj.get("apiVersion"), str) or not isinstance(obj.get("kind"), str):
        return None
    try:
        version = table().get(parse_group_version(obj["apiVersion"]))
    except ValueError:
        return None
    rows = () if version is None else version.resources
    return next((row for row in rows if row.kind == obj["kind"] and row.verbs), None)


def _successor(row: Resource) -> Resource | None:
    """Today's version: of the same group if it has one, else that which objects are kept in."""
    if not row.legacy:
        return row
    others = [each for each in versions_of(row) if not each.legacy]
    same = [each for each in others if each.group == row.group]
    return next(iter(same or [each for each in others if each.group_version == row.hub]), None)


def _at(row: Resource, to: GroupVersion) -> Resource | None:
    return next((each for each in versions_of(row) if each.group_version == to), None)


def _converted(obj: Object, row: Resource, target: Resource) -> Object:
    body = copy.deepcopy({key: value for key, value in obj.items() if key not in ("apiVersion", "kind")})
    made: Object = decode(types.struct(row.type_name), {"metadata": {}, **body})[0]
    default = own_defaults(row)
    if default is not None:
        default(made)
    for convert in (converters_for(row)[0], converters_for(target)[1]):
        made = made if convert is None else convert(made)
    kept = _without_extras(made, body)
    if "status" not in body:
        kept.pop("status", None)
    return {"apiVersion": str(target.group_version), "kind": target.kind, **kept}


def _without_extras(made: Any, given: Any) -> Any:
    """Without empty values that nobody gave; fields that were given come first, in their order."""
    if isinstance(made, dict):
        source = given if isinstance(given, dict) else {}
        names = [*(name for name in source if name in made), *(name for name in made if name not in source)]
        kept = {name: _without_extras(made[name], source.get(name)) for name in names}
        return {name: value for name, value in kept.items() if name in source or value not in _EMPTY}
    if isinstance(made, list):
        items: list[Any] = given if isinstance(given, list) and len(given) == len(made) else [None] * len(made)
        return [_without_extras(item, old) for item, old in zip(made, items, strict=True)]
    return made
