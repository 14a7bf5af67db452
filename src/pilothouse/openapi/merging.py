"""Documents of version 2 that other servers have, merged into ours as kube-aggregator does.

A path that is there already stays as it is. Definitions and parameters of one name and different content live side by
side: the one that comes later is called ``NAME_v2``, ``_v3`` and so on, and what refers to it is rewritten. Kinds
(``x-kubernetes-group-version-kind``) are no part of a definition's content: those of equal definitions are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from pilothouse.openapi.schemas import GVK_KEY

Tree = dict[str, Any]
_DEFINITION: Final = "#/definitions/"
_PARAMETER: Final = "#/parameters/"


def only_below(document: Tree, prefixes: tuple[str, ...]) -> Tree:
    """A document with the paths that begin with one of these, and without definitions that only others used."""
    paths = document.get("paths")
    if paths is None:
        return document
    used_before = _used_definitions(document)
    kept: Tree = {**document, "paths": {path: item for path, item in paths.items() if path.startswith(prefixes)}}
    used = _used_definitions(kept)
    definitions = document.get("definitions") or {}
    kept["definitions"] = {
        name: schema for name, schema in definitions.items() if name in used or name not in used_before
    }
    return kept


def merge_into(target: Tree, source: Tree) -> None:
    """Add to ``target`` what ``source`` has and it has not. Parts of ``source`` become parts of ``target``."""
    paths = source.get("paths")
    if not paths:
        return
    there = target.setdefault("paths", {})
    new = tuple(path for path in paths if path not in there)
    if not new:
        return
    if len(new) < len(paths):
        source = only_below(source, new)
    source = _renamed(source, "definitions", _DEFINITION, target, _equal_but_for_kinds)
    source = _renamed(source, "parameters", _PARAMETER, target, lambda one, other: bool(one == other))
    _add_definitions(target.setdefault("definitions", {}), source.get("definitions") or {})
    for name, parameter in (source.get("parameters") or {}).items():
        target.setdefault("parameters", {}).setdefault(name, parameter)
    for path, item in source["paths"].items():
        there.setdefault(path, item)


def _references(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from _references(item)


def _used_definitions(document: Tree) -> set[str]:
    """The definitions that paths lead to, directly or through others."""
    definitions = document.get("definitions") or {}
    found: set[str] = set()
    waiting: list[Any] = [{key: value for key, value in document.items() if key != "definitions"}]
    while waiting:
        for reference in _references(waiting.pop()):
            name = reference.removeprefix(_DEFINITION)
            if name != reference and name not in found:
                found.add(name)
                waiting.append(definitions.get(name))
    return found


def _renamed(source: Tree, section: str, prefix: str, target: Tree, equal: Callable[[Any, Any], bool]) -> Tree:
    """The source with new names for all that clashes in one section."""
    own, there = source.get(section) or {}, target.get(section) or {}
    renames: dict[str, str] = {}
    taken = set(there)
    for name in sorted(own):
        if name in there and not equal(there[name], own[name]):
            renames[name] = _free_name(name, own, there, taken, equal)
            taken.add(renames[name])
    if not renames:
        return source
    moved = {prefix + old: prefix + new for old, new in renames.items()}
    changed: Tree = _replace_references(source, moved)
    changed[section] = {renames.get(name, name): value for name, value in changed[section].items()}
    return changed


def _free_name(name: str, own: Tree, there: Tree, taken: Iterable[str], equal: Callable[[Any, Any], bool]) -> str:
    """The name under which the same content stands already, or else one that nobody has."""
    number = 2
    while (candidate := f"{name}_v{number}") in there:
        if equal(there[candidate], own[name]):
            return candidate
        number += 1
    while candidate in taken or candidate in own:
        number += 1
        candidate = f"{name}_v{number}"
    return candidate


def _replace_references(tree: Any, moved: dict[str, str]) -> Any:
    if isinstance(tree, dict):
        return {
            key: moved.get(value, value) if key == "$ref" and isinstance(value, str)
            else _replace_references(value, moved)
            for key, value in tree.items()
        }  # fmt: skip
    if isinstance(tree, list):
        return [_replace_references(item, moved) for item in tree]
    return tree


def _equal_but_for_kinds(one: Tree, other: Tree) -> bool:
    return _without_kinds(one) == _without_kinds(other)


def _without_kinds(schema: Tree) -> Tree:
    return {key: value for key, value in schema.items() if key != GVK_KEY}


def _add_definitions(there: Tree, new: Tree) -> None:
    for name, schema in new.items():
        known = there.get(name)
        if known is None:
            there[name] = schema
        elif GVK_KEY in schema:
            there[name] = {**known, GVK_KEY: _join_kinds(known.get(GVK_KEY), schema[GVK_KEY])}


def _join_kinds(known: list[Tree] | None, more: list[Tree]) -> list[Tree]:
    if known is None:
        return more
    added = [kind for kind in more if kind not in known]
    return sorted(known + added, key=_kind_key) if added else known


def _kind_key(kind: Tree) -> str:
    return f"{kind.get('group')}/{kind.get('version')}.{kind.get('kind')}"
