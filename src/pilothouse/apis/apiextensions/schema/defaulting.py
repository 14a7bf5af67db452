"""Filling in defaults. Each use gets a copy of its own; branches of a schema without defaults are never visited."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node


def fill_defaults(value: Any, node: Node | None) -> None:
    """Set what is missing, or null where it may not be, in place. Doing it again changes nothing."""
    if node is None or not node.has_defaults:
        return
    if value.__class__ is dict:
        _fill_map(value, node)
    elif value.__class__ is list:
        items = node.items
        if items is None:
            return
        for position, item in enumerate(value):
            if item is None and not items.nullable:
                item = value[position] = copy_default(items)
            fill_defaults(item, items)


def _fill_map(value: dict[str, Any], node: Node) -> None:
    properties, additional = node.properties, node.additional
    for key, child in properties.items():
        if child.default is not NO_DEFAULT:
            present = value.get(key, NO_DEFAULT)
            if present is NO_DEFAULT or (present is None and not child.nullable):
                value[key] = copy_default(child)
        if child.has_defaults and key in value:
            fill_defaults(value[key], child)
    if additional is None or not (additional.has_defaults or additional.default is not NO_DEFAULT):
        return
    for key, item in value.items():
        if key not in properties:
            if item is None and not additional.nullable:
                item = value[key] = copy_default(additional)
            fill_defaults(item, additional)


def copy_default(node: Node) -> Any:
    """The node's default, or null without one; containers are copied."""
    default = node.default
    if default is NO_DEFAULT:
        return None
    return orjson.loads(orjson.dumps(default)) if default.__class__ in (dict, list) else default
