"""Which old value belongs to a value, and whether anything changed: faults of unchanged values are only warned about.

Fields belong together by name, items of map lists by their keys. A field that the schema does not know has no old
value, so an object that holds one counts as changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pilothouse.cel.values import item_key

Schema = Mapping[str, Any]


class OldItems:
    """The old items of a list, found by the keys of new ones; empty unless the list is a map."""

    __slots__ = ("_found", "_keys", "_schema")

    def __init__(self, schema: Schema, old: Any) -> None:
        self._schema = schema
        self._keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._found: dict[Any, Any] = {}
        if schema.get("x-kubernetes-list-type") == "map" and isinstance(old, list):
            for item in old:
                if isinstance(item, dict):
                    self._found.setdefault(self._identity(item), item)

    def _identity(self, item: dict[str, Any]) -> Any:
        properties = (self._schema.get("items") or {}).get("properties") or {}
        if all(key in item for key in self._keys):
            return item_key(item, self._keys)
        completed = {key: item.get(key, (properties.get(key) or {}).get("default")) for key in self._keys}
        return item_key(completed, self._keys)

    def get(self, item: Any) -> Any:
        return self._found.get(self._identity(item)) if self._found and isinstance(item, dict) else None


class Correlated:
    """A value with its old value and their schema; comparisons are made once."""

    __slots__ = ("_children", "_items", "_unchanged", "old", "schema", "value")

    def __init__(self, value: Any, old: Any, schema: Schema) -> None:
        self.value = value
        self.old = old
        self.schema = schema
        self._children: dict[str | int, Correlated] = {}
        self._items: OldItems | None = None
        self._unchanged: bool | None = None

    def key(self, name: str) -> Correlated | None:
        found = self._children.get(name)
        if found is not None:
            return found
        value, old = self.value, self.old
        if not isinstance(value, dict) or not isinstance(old, dict) or name not in value or name not in old:
            return None
        schema = (self.schema.get("properties") or {}).get(name)
        if schema is None:
            schema = self.schema.get("additionalProperties")
        if not isinstance(schema, dict):
            return None
        made = self._children[name] = Correlated(value[name], old[name], schema)
        return made

    def index(self, position: int) -> Correlated | None:
        found = self._children.get(position)
        if found is not None:
            return found
        items = self.schema.get("items")
        if not isinstance(self.value, list) or not isinstance(self.old, list) or not isinstance(items, dict):
            return None
        if self.schema.get("x-kubernetes-list-type") != "map":
            return None
        if self._items is None:
            self._items = OldItems(self.schema, self.old)
        old = self._items.get(self.value[position])
        if old is None:
            return None
        made = self._children[position] = Correlated(self.value[position], old, items)
        return made

    def unchanged(self) -> bool:
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if value is None or old is None:
            return value is old
        if isinstance(value, dict) and isinstance(old, dict):
            if len(value) != len(old):
                return False
            return all((child := self.key(name)) is not None and child.unchanged() for name in value)
        if isinstance(value, list) and isinstance(old, list):
            if len(value) != len(old):
                return False
            if self.schema.get("x-kubernetes-list-type") != "map":
                return same(value, old)
            return all((child := self.index(at)) is not None and child.unchanged() for at in range(len(value)))
        return same(value, old)


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same, numbers by their types too."""
    if left.__class__ is not right.__class__:
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
