"""Dropping what a schema does not know.

Pruning works in place and notes where it dropped something, so that the client can be told. Fields of embedded objects
that every object has (apiVersion, kind, metadata) stay whatever the schema says of them. A second walk drops nulls
where the schema allows none and has no default for them.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node
from pilothouse.machinery.workers import ABANDONED, checkpoint

TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})

Steps = tuple[Any, ...]
"""The way to a value, innermost first: ``(key, (outer key, ()))``; an index is an int."""


def prune(obj: dict[str, Any], root: Node) -> list[str]:
    """Drop unknown fields of a whole object; gives their paths, sorted."""
    dropped: list[str] = []
    if root.preserves:
        _keep(obj, root, (), dropped, embedded=True)
    else:
        _prune_map(obj, root, (), dropped, embedded=True)
    dropped.sort()
    return dropped


def prune_value(value: Any, node: Node | None) -> list[str]:
    """Drop unknown fields of a value somewhere in an object; gives their paths."""
    dropped: list[str] = []
    _prune(value, node, (), dropped)
    dropped.sort()
    return dropped


def _prune(value: Any, node: Node | None, steps: Steps, dropped: list[str]) -> None:
    if ABANDONED:
        checkpoint()
    kind = value.__class__
    if kind is dict:
        if node is None:
            dropped += (show_steps((key, steps)) for key in value)
            value.clear()
        elif node.preserves:
            _keep(value, node, steps, dropped, embedded=node.embedded)
        else:
            _prune_map(value, node, steps, dropped, embedded=node.embedded)
    elif kind is list:
        if node is not None and node.preserves:
            _keep(value, node, steps, dropped, embedded=False)
            return
        items = node.items if node is not None else None
        for position, item in enumerate(value):
            if item.__class__ in (dict, list):
                _prune(item, items, (position, steps), dropped)


def _prune_map(value: dict[str, Any], node: Node, steps: Steps, dropped: list[str], *, embedded: bool) -> None:
    properties, additional, closes = node.properties, node.additional, node.closes_additional
    unknown: list[str] = []
    for key, item in value.items():
        if embedded and key in TYPE_FIELDS:
            continue
        child = properties.get(key) or additional
        if child is None and not closes:
            unknown.append(key)
        elif item.__class__ in (dict, list):
            _prune(item, child, (key, steps), dropped)
    for key in unknown:
        del value[key]
        if steps or key not in TYPE_FIELDS:
            dropped.append(show_steps((key, steps)))


def _keep(value: Any, node: Node | None, steps: Steps, dropped: list[str], *, embedded: bool) -> None:
    """Keep unknown fields here, but prune below known ones."""
    if node is None:
        return
    if value.__class__ is dict:
        for key, item in value.items():
            if item.__class__ not in (dict, list) or (embedded and key in TYPE_FIELDS):
                continue
            child = node.properties.get(key)
            if child is not None:
                _prune(item, child, (key, steps), dropped)
            elif node.additional is not None or node.closes_additional:
                _prune(item, node.additional, (key, steps), dropped)
    elif value.__class__ is list:
        for position, item in enumerate(value):
            items = node.items
            _keep(item, items, (position, steps), dropped, embedded=items is not None and items.embedded)


def show_steps(steps: Steps) -> str:
    """The path as messages show it: ``spec.list[0].field``."""
    parts: list[str] = []
    while steps:
        step, steps = steps
        parts.append(f"[{step}]" if step.__class__ is int else f".{step}")
    return "".join(reversed(parts)).lstrip(".")


def drop_nulls(value: Any, node: Node | None) -> None:
    """Drop nulls of fields that may not be null and have no default."""
    if value.__class__ is dict:
        dropped: list[str] = []
        for key, item in value.items():
            child = node.below(key) if node is not None else None
            if item is None:
                if child is not None and not child.nullable and child.default is NO_DEFAULT:
                    dropped.append(key)
            elif item.__class__ in (dict, list):
                drop_nulls(item, child)
        for key in dropped:
            del value[key]
    elif value.__class__ is list:
        items = node.items if node is not None else None
        for item in value:
            if item.__class__ in (dict, list):
                drop_nulls(item, items)
