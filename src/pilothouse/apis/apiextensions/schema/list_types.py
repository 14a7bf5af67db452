"""Lists that are sets or maps (``x-kubernetes-list-type``): no element, and no key, may stand twice."""

from __future__ import annotations

from typing import Any

import orjson

from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid
from pilothouse.machinery.kept_json import dumps_to_keep


def check_lists(obj: Any, node: Node | None, path: Path | None = None) -> list[FieldError]:
    """Errors of all lists in an object."""
    errs: list[FieldError] = []
    if node is not None and node.has_lists and obj.__class__ is dict:
        _check(obj, node, path, errs)
    return errs


def _check(value: Any, node: Node, path: Path | None, errs: list[FieldError]) -> None:
    if value.__class__ is dict:
        if node.additional is not None and node.additional.has_lists:
            for key, item in value.items():
                _check(item, node.additional, (path or Path()).key(key), errs)
        for key, item in value.items():
            child = node.properties.get(key)
            if child is not None and child.has_lists:
                _check(item, child, Path(key) if path is None else path.child(key), errs)
    elif value.__class__ is list:
        path = path or Path()
        if node.list_type == "set":
            errs += _duplicates(value, path)
        elif node.list_type == "map":
            _check_map(value, node.list_keys, path, errs)
        if node.items is not None and node.items.has_lists:
            for position, item in enumerate(value):
                _check(item, node.items, path.index(position), errs)


def _check_map(items: list[Any], keys: tuple[str, ...], path: Path, errs: list[FieldError]) -> None:
    for position, item in enumerate(items):
        if item is not None and item.__class__ is not dict:
            errs.append(invalid(path.index(position), item, "must be an object for an array of list-type map"))
            return
    identities = [{key: item[key] for key in keys if key in item} if item else {} for item in items]
    errs += _duplicates(identities, path)


def _duplicates(items: list[Any], path: Path) -> list[FieldError]:
    """Errors of values that stand twice, objects shown with their keys sorted."""
    return [
        duplicate(path.index(at), orjson.loads(orjson.dumps(items[at], option=orjson.OPT_SORT_KEYS)))
        for at in _repeated(items)
    ]


def _repeated(items: list[Any]) -> list[int]:
    """Where a value stands for the second time; its third and later occurrences are not named."""
    if len(items) < 2:
        return []
    seen: dict[Any, int] = {}
    repeated: list[int] = []
    for position, item in enumerate(items):
        compound = item.__class__ in (dict, list)
        key = (item.__class__, dumps_to_keep(item, orjson.OPT_SORT_KEYS) if compound else item)
        count = seen[key] = seen.get(key, 0) + 1
        if count == 2:
            repeated.append(position)
    return repeated
