"""Filling in defaults. Each use gets a copy of its own; branches of a schema without defaults are never visited.

A few bytes can ask for very many defaults: ``[{},{},…]`` for one in each item. So what is made is counted, and nothing
is made that would be too large to be stored.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node
from pilothouse.machinery.workers import ABANDONED, checkpoint

MOST_BYTES: Final = 4 << 20
"""Of defaults in one object, as JSON: twice of what may be stored."""
_SCALAR_BYTES: Final = 8


class TooManyDefaults(Exception):
    """The object would become too large to be stored."""


def fill_defaults(value: Any, node: Node | None) -> None:
    """Set what is missing, or null where it may not be, in place. Doing it again changes nothing."""
    if node is not None and node.has_defaults:
        _Filling().fill(value, node)


class _Filling:
    """The filling of one object, and how much more may be made for it."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def fill(self, value: Any, node: Node | None) -> None:
        if node is None or not node.has_defaults:
            return
        if value.__class__ is dict:
            self._fill_map(value, node)
        elif value.__class__ is list:
            items = node.items
            if items is None:
                return
            for position, item in enumerate(value):
                if item is None and not items.nullable:
                    item = value[position] = self._copy(items)
                self.fill(item, items)

    def _fill_map(self, value: dict[str, Any], node: Node) -> None:
        if ABANDONED:
            checkpoint()
        properties, additional = node.properties, node.additional
        for key, child in properties.items():
            if child.default is not NO_DEFAULT:
                present = value.get(key, NO_DEFAULT)
                if present is NO_DEFAULT or (present is None and not child.nullable):
                    self._left -= len(key)
                    value[key] = self._copy(child)
            if child.has_defaults and key in value:
                self.fill(value[key], child)
        if additional is None or not (additional.has_defaults or additional.default is not NO_DEFAULT):
            return
        for key, item in value.items():
            if key not in properties:
                if item is None and not additional.nullable:
                    item = value[key] = self._copy(additional)
                self.fill(item, additional)

    def _copy(self, node: Node) -> Any:
        """The node's default, or null without one; containers are copied."""
        default = node.default
        if default is NO_DEFAULT:
            return None
        compound = default.__class__ in (dict, list)
        data = orjson.dumps(default) if compound else b""
        self._left -= len(data) if compound else _SCALAR_BYTES
        if self._left < 0:
            raise TooManyDefaults
        return orjson.loads(data) if compound else default
