"""Ratcheting: which old value belongs to a new one, so that errors which an update did not touch are forgiven.

Fields belong together by name, items of map lists by their keys; other lists only as a whole. A field that the schema
does not describe has no counterpart, so an object that holds one never counts as unchanged. Schemas are OpenAPI's, as
definitions state them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

Schema = Mapping[str, Any]
_KEY_TYPES: Final = (str, int, bool, float)


class OldItems:
    """The old items of a list, found by the keys of new ones; none unless the list is a map."""

    __slots__ = ("_found", "_keys")

    def __init__(self, schema: Schema, old: Any) -> None:
        self._keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._found: dict[bytes, Any] = {}
        if self._keys and is_map_list(schema) and old.__class__ is list:
            for item in old:
                identity = self._identity(item)
                if identity is not None:
                    self._found.setdefault(identity, item)

    def get(self, item: Any) -> Any:
        """The old item with the keys of a new one, None if there is none."""
        if not self._found:
            return None
        identity = self._identity(item)
        return None if identity is None else self._found.get(identity)

    def _identity(self, item: Any) -> bytes | None:
        if item.__class__ is not dict:
            return None
        values = [item.get(key) for key in self._keys]
        if any(value.__class__ not in _KEY_TYPES for value in values):
            return None
        return orjson.dumps(values)


class CorrelatedObject:
    """A new value, its old one and their schema. Comparisons are made once."""

    __slots__ = ("_children", "_items", "_unchanged", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: Schema) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._children: dict[str | int, CorrelatedObject] = {}
        self._items: OldItems | None = None
        self._unchanged: bool | None = None

    def key(self, name: str) -> CorrelatedObject | None:
        """The correlation of a field, None where it is new or unknown."""
        found = self._children.get(name)
        if found is not None:
            return found
        value, old = self.value, self.old
        if value.__class__ is not dict or old.__class__ is not dict or name not in value or name not in old:
            return None
        schema = (self.schema.get("properties") or {}).get(name)
        if schema is None:
            schema = self.schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
        made = self._children[name] = CorrelatedObject(value[name], old[name], schema)
        return made

    def index(self, position: int) -> CorrelatedObject | None:
        """The correlation of a list item, None unless the list is a map that had this key."""
        found = self._children.get(position)
        if found is not None:
            return found
        items = self.schema.get("items")
        if self.value.__class__ is not list or not is_map_list(self.schema) or not isinstance(items, dict):
            return None
        if self._items is None:
            self._items = OldItems(self.schema, self.old)
        old = self._items.get(self.value[position])
        if old is None:
            return None
        made = self._children[position] = CorrelatedObject(self.value[position], old, items)
        return made

    def is_unchanged(self) -> bool:
        """Whether new and old are the same."""
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if value.__class__ is not old.__class__:
            return False
        if value.__class__ is dict:
            if len(value) != len(old):
                return False
            return all((child := self.key(name)) is not None and child.is_unchanged() for name in value)
        if value.__class__ is list:
            if len(value) != len(old):
                return False
            if not is_map_list(self.schema):
                return _text(value) == _text(old)
            return all((child := self.index(at)) is not None and child.is_unchanged() for at in range(len(value)))
        return bool(value == old)


def is_map_list(schema: Schema) -> bool:
    """Whether the items of a list have keys that tell them apart."""
    return schema.get("x-kubernetes-list-type") == "map"


def _text(value: Any) -> bytes:
    """What two JSON values have in common if and only if they are the same, numbers by their types too."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
