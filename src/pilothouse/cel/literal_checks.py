"""Checks constant arguments that can only be wrong: durations, timestamps and patterns that do not parse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.cel.conversions import parse_timestamp
from pilothouse.cel.nodes import Call, Comprehension, ListNode, Literal, MapNode, Node, Select, StructNode
from pilothouse.cel.regular_expressions import is_pattern
from pilothouse.cel.values import EvaluationError
from pilothouse.machinery.times import TimeError, parse_duration


def _is_duration(text: Any) -> bool:
    try:
        parse_duration(text)
    except TimeError:
        return False
    return True


def _is_timestamp(text: Any) -> bool:
    try:
        parse_timestamp(text)
    except (TimeError, EvaluationError):
        return False
    return True


_CHECKS: dict[str, tuple[int, Callable[[Any], bool]]] = {
    "duration": (0, _is_duration),
    "timestamp": (0, _is_timestamp),
    "matches": (-1, is_pattern),
}


def check_literals(root: Node) -> list[tuple[int, str]]:
    faults: list[tuple[int, str]] = []
    for node in walk(root):
        if not isinstance(node, Call) or node.function not in _CHECKS or not node.arguments:
            continue
        position, accepts = _CHECKS[node.function]
        argument = node.arguments[position]
        if isinstance(argument, Literal) and isinstance(argument.value, str) and not accepts(argument.value):
            faults.append((argument.offset, f"invalid {node.function} argument"))
    return faults


def walk(root: Node) -> Iterator[Node]:
    """Go through a tree, each node once."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        yield node
        for child in children(node):
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)


def children(node: Node) -> list[Node]:
    if isinstance(node, Call):
        return node.arguments if node.target is None else [node.target, *node.arguments]
    if isinstance(node, Select):
        return [] if node.ident is not None else [node.operand]
    if isinstance(node, ListNode):
        return node.elements
    if isinstance(node, MapNode):
        return [part for entry in node.entries for part in (entry.key, entry.value)]
    if isinstance(node, StructNode):
        return [entry.value for entry in node.entries]
    if isinstance(node, Comprehension):
        return [node.range, node.initial, node.condition, node.step, node.result]
    return []
