"""Which old value belongs to a new one: the basis of forgiving faults that an update did not touch.

Fields belong together by name, items of map lists by their keys; other lists only as a whole. A field that the schema
does not describe has no counterpart, so an object that holds one never counts as unchanged.
"""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node


class Correlation:
    """A new value, its old one and their schema. Comparisons are made once."""

    __slots__ = ("_by_key", "_children", "_unchanged", "node", "old", "value")

    def __init__(self, value: Any, old: Any, node: Node) -> None:
        self.value = value
        self.old = old
        self.node = node
        self._children: dict[str | int, Correlation] = {}
        self._by_key: dict[bytes, Any] | None = None
        self._unchanged: bool | None = None

    def key(self, name: str) -> Correlation | None:
        """The correlation of a field, None where it is new or unknown."""
        found = self._children.get(name)
        if found is not None:
            return found
        value, old = self.value, self.old
        if value.__class__ is not dict or old.__class__ is not dict or name not in value or name not in old:
            return None
        node = self.node.below(name)
        if node is None:
            return None
        made = self._children[name] = Correlation(value[name], old[name], node)
        return made

    def index(self, position: int) -> Correlation | None:
        """The correlation of a list item, None unless the list is a map that had this key."""
        found = self._children.get(position)
        if found is not None:
            return found
        items = self.node.items
        if self.value.__class__ is not list or self.old.__class__ is not list:
            return None
        if self.node.list_type != "map" or items is None:
            return None
        old = self._old_items().get(self._identity(self.value[position]) or b"")
        if old is None:
            return None
        made = self._children[position] = Correlation(self.value[position], old, items)
        return made

    def is_unchanged(self) -> bool:
        """Whether new and old are the same."""
        if self._unchanged is None:
            self._unchanged = self._compare()
        return self._unchanged

    def _compare(self) -> bool:
        value, old = self.value, self.old
        if value is None or old is None:
            return value is None and old is None
        if value.__class__ is dict and old.__class__ is dict:
            if len(value) != len(old):
                return False
            return all((child := self.key(name)) is not None and child.is_unchanged() for name in value)
        if value.__class__ is list and old.__class__ is list:
            return self._compare_lists(value, old)
        return value.__class__ is old.__class__ and bool(value == old)

    def _compare_lists(self, value: list[Any], old: list[Any]) -> bool:
        if len(value) != len(old):
            return False
        if self.node.list_type != "map" or self.node.items is None:
            return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) == orjson.dumps(old, option=orjson.OPT_SORT_KEYS)
        return all((child := self.index(at)) is not None and child.is_unchanged() for at in range(len(value)))

    def _old_items(self) -> dict[bytes, Any]:
        if self._by_key is None:
            self._by_key = {}
            for item in self.old:
                identity = self._identity(item)
                if identity is not None:
                    self._by_key.setdefault(identity, item)
        return self._by_key

    def _identity(self, item: Any) -> bytes | None:
        if item.__class__ is not dict or self.node.items is None:
            return None
        fields = self.node.items.properties
        values = []
        for key in self.node.list_keys:
            value = item.get(key)
            if value is None and key in fields and fields[key].default is not NO_DEFAULT:
                value = fields[key].default
            values.append(value)
        return orjson.dumps(values)
