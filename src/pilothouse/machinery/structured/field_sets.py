"""Sets of field paths in the very form that ``managedFields`` stores them, and their algebra.

A set is a tree of dicts, keyed by steps:

    {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}}        holds .metadata.labels and .metadata.labels.app

An empty node is a member; a node with children is one only if it has ``"."``. The root is never a member, so the empty
root is the empty set. Keeping the stored form means that reading and writing cost nothing and that an untouched
manager's set is passed on as it is. Nodes are shared freely between sets and never changed after they were made. The
steps of every node are in stored order; all functions here keep it so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pilothouse.machinery import piecewise
from pilothouse.machinery.structured.paths import Path, PathError, order, read_step

FieldSet = dict[str, Any]


def is_member(node: FieldSet) -> bool:
    """Whether a node itself, not only something below it, belongs to the set."""
    return not node or "." in node


def children(node: FieldSet) -> FieldSet:
    """What is below a node, as a set of its own."""
    return {step: child for step, child in node.items() if step != "."} if "." in node else node


def from_paths(*paths: Path) -> FieldSet:
    """The set of these paths. The empty path, the whole object, is not tracked."""
    root: FieldSet = {}
    for path in paths:
        single: FieldSet = {}
        for step in reversed(path):
            single = {step: single}
        root = union(root, single)
    return root


def has(fields: FieldSet, path: Path) -> bool:
    node: FieldSet | None = fields
    for step in path:
        node = node.get(step)  # type: ignore[union-attr]
        if node is None:
            return False
    return bool(path) and node is not None and is_member(node)


def paths_of(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    """All paths in the set: at each level first the members, then what is below each, in order."""
    for step, node in fields.items():
        if step != "." and is_member(node):
            yield (*prefix, step)
    for step, node in fields.items():
        if node:
            yield from paths_of(node, (*prefix, step))


def size(fields: FieldSet) -> int:
    return sum(1 for _ in paths_of(fields))


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    out = dict(left)
    for step, node in right.items():
        mine = out.get(step)
        out[step] = node if mine is None else _join(mine, node)
    return out if len(out) == len(left) else in_order(out)


def _join(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right:
        return left
    if not left or not right:
        node = left or right
        return node if is_member(node) else {".": {}, **node}
    return union(left, right)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    out: FieldSet = {}
    for step, node in left.items():
        other = right.get(step)
        if other is not None and step != ".":
            both = _node(is_member(node) and is_member(other), intersection(node, other))
            if both is not None:
                out[step] = both
    return out


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of the left set that the right one does not have."""
    if not left or not right:
        return left
    out: FieldSet = {}
    for step, node in left.items():
        other = right.get(step)
        if other is None or step == ".":
            out[step] = node
            continue
        rest = _node(is_member(node) and not is_member(other), difference(children(node), other) if node else {})
        if rest is not None:
            out[step] = rest
    return out


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of the left set that are neither in the right one nor below a path in it."""
    if not left or not right:
        return left
    out: FieldSet = {}
    for step, node in left.items():
        other = right.get(step)
        if other is None or step == ".":
            out[step] = node
        elif not is_member(other):
            rest = _node(is_member(node), recursive_difference(children(node), other) if node else {})
            if rest is not None:
                out[step] = rest
    return out


ANY = "*"
"""In a pattern, stands for any step."""


def matching(fields: FieldSet, pattern: FieldSet) -> FieldSet:
    """The paths of the set that lead to or go on from those of a pattern; an empty pattern lets all below through."""
    if not pattern:
        return fields
    out: FieldSet = {}
    for step, node in fields.items():
        below = pattern.get(ANY, pattern.get(step))
        if below is not None and step != ".":
            rest = _node(is_member(node), matching(children(node), below) if node else {})
            if rest is not None:
                out[step] = rest
    return out


def _node(member: bool, below: FieldSet) -> FieldSet | None:
    if member:
        return {".": {}, **below} if below else {}
    return below or None


def leaves(fields: FieldSet) -> FieldSet:
    """The members with nothing below them."""
    return {step: leaves(node) if node else node for step, node in fields.items() if step != "."}


def in_order(fields: FieldSet) -> FieldSet:
    """One level of a set with its steps in the order in which they are written."""
    if len(fields) < 2:
        return fields
    steps = list(fields)
    right = piecewise.in_order(steps)
    if right[-1] > "g" and not _sort_as_texts(right):
        right.sort(key=order)
    return fields if right == steps else {step: fields[step] for step in right}


_PLAIN_ITEM = re.compile(r'((?:v:|k:\{"[^"\\]*":)")[^"\\ !]*"\}?')


def _sort_as_texts(steps: list[str]) -> bool:
    """Whether list items, sorted as texts, are in order: members of a set or items by one key, plain strings all.

    Fields always are. Reading what each step means, to sort by that, takes several times the memory of the steps.
    """
    first = _PLAIN_ITEM.fullmatch(steps[0])
    return first is not None and steps[-1].startswith(first[1]) and piecewise.all_of(_PLAIN_ITEM.fullmatch, steps)


def read(fields: Any, depth: int = 0) -> FieldSet:
    """A set from somebody else's ``fieldsV1``: steps made canonical, unknown kinds left out."""
    node = _read(fields, depth)
    return children(node) if node is not None and node != {".": {}} else {}


def _read(fields: Any, depth: int) -> FieldSet | None:
    if fields is None:
        return {}
    if not isinstance(fields, dict):
        raise PathError("expect { or n")
    if depth > 500:
        raise PathError("exceeded max depth")
    out: FieldSet = {}
    for text, below in fields.items():
        if text == ".":
            out["."] = {}
            continue
        step = read_step(text)
        if step is not None:
            node = _read(below, depth + 1)
            if node is not None:
                out[step] = node
    # Only "." inside is the same as nothing inside.
    return {} if len(out) == 1 and "." in out else in_order(out)
