"""Checks of literals beyond their types: values of one kind in lists and maps, and constant arguments that cannot be
right: durations, timestamps, patterns, and format strings with their arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pilothouse.cel.conversions import to_timestamp
from pilothouse.cel.library.formatting import CLAUSES, FormatError, read_clauses
from pilothouse.cel.nodes import Call, Comprehension, ListNode, Literal, MapNode, Node, Select, StructNode
from pilothouse.cel.regular_expressions import is_pattern
from pilothouse.cel.types import Type, unwrap_optional
from pilothouse.cel.values import EvaluationError
from pilothouse.machinery.times import TimeError, parse_duration

LiteralErrors = list[tuple[int, str]]


def _is_duration(text: Any) -> bool:
    try:
        parse_duration(text)
    except TimeError:
        return False
    return True


def _is_timestamp(value: Any) -> bool:
    try:
        to_timestamp(value)
    except EvaluationError:
        return False
    return True


_CHECKS: dict[str, tuple[int, tuple[type, ...], Callable[[Any], bool]]] = {
    "duration": (0, (str,), _is_duration),
    "timestamp": (0, (str, int), _is_timestamp),
    "matches": (-1, (str,), is_pattern),
}
_PRINTABLE = frozenset(
    {"list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null", "dyn"}
)
_ACCEPTED = {
    "s": _PRINTABLE,
    "d": frozenset({"int", "uint", "dyn"}),
    "f": frozenset({"double", "string", "dyn"}),
    "e": frozenset({"double", "string", "dyn"}),
    "b": frozenset({"int", "uint", "bool", "dyn"}),
    "x": frozenset({"int", "uint", "string", "bytes", "dyn"}),
    "X": frozenset({"int", "uint", "string", "bytes", "dyn"}),
    "o": frozenset({"int", "uint", "dyn"}),
}


def check_literals(root: Node) -> LiteralErrors:
    errs: LiteralErrors = []
    for node, in_format in walk(root):
        if isinstance(node, Call):
            _check_call(node, errs)
        elif in_format:
            continue
        elif isinstance(node, ListNode):
            _check_list(node, errs)
        elif isinstance(node, MapNode):
            _check_map(node, errs)
    return errs


def _check_call(node: Call, errs: LiteralErrors) -> None:
    if node.function == "format" and node.target is not None:
        _check_format(node, errs)
    if node.function not in _CHECKS or not node.arguments:
        return
    position, kinds, accepts = _CHECKS[node.function]
    argument = node.arguments[position]
    if isinstance(argument, Literal) and argument.value.__class__ in kinds and not accepts(argument.value):
        errs.append((argument.offset, f"invalid {node.function} argument"))


def _mismatch(offset: int, wanted: Type, given: Type, errs: LiteralErrors) -> None:
    errs.append((offset, f"expected type '{wanted}' but found '{given}'"))


def _check_list(node: ListNode, errs: LiteralErrors) -> None:
    wanted: Type | None = None
    for index, item in enumerate(node.elements):
        kind = unwrap_optional(item.type)[0] if index in node.optional else item.type
        if wanted is None:
            wanted = kind
        elif kind is not wanted and kind != wanted:
            _mismatch(item.offset, wanted, kind, errs)
            return


def _check_map(node: MapNode, errs: LiteralErrors) -> None:
    wanted: tuple[Type, Type] | None = None
    for entry in node.entries:
        value = unwrap_optional(entry.value.type)[0] if entry.optional else entry.value.type
        if wanted is None:
            wanted = (entry.key.type, value)
            continue
        if entry.key.type != wanted[0]:
            _mismatch(entry.key.offset, wanted[0], entry.key.type, errs)
        if value != wanted[1]:
            _mismatch(entry.value.offset, wanted[1], value, errs)


def _check_format(node: Call, errs: LiteralErrors) -> None:
    """A constant format with a literal list of arguments must fit it."""
    template, arguments = node.target, node.arguments[0] if len(node.arguments) == 1 else None
    if not isinstance(template, Literal) or not isinstance(template.value, str) or not isinstance(arguments, ListNode):
        return
    given = arguments.elements
    try:
        clauses = [piece for piece in read_clauses(template.value, len(given)) if not isinstance(piece, str)]
    except FormatError as error:
        errs.append((node.offset, str(error)))
        return
    for (letter, _), argument in zip(clauses, given, strict=False):
        wrong = _unprintable(letter, argument)
        if wrong is not None:
            errs.append((wrong.offset, "error during formatting: " + CLAUSES[letter] % wrong.type.name))
            return
    if len(given) > len(clauses):
        message = f"too many arguments supplied to string.format (expected {len(clauses)}, got {len(given)})"
        errs.append((node.offset, message))


def _unprintable(letter: str, node: Node) -> Node | None:
    if node.type.kind not in _ACCEPTED[letter]:
        return node
    if letter != "s" or not isinstance(node, ListNode | MapNode):
        return None
    return next((wrong for child in children(node) if (wrong := _unprintable(letter, child)) is not None), None)


def walk(root: Node) -> Iterator[tuple[Node, bool]]:
    """Go through a tree but for its literals, each node once, telling whether it is inside a call of `format`."""
    waiting, seen = [(root, False)], {id(root)}
    while waiting:
        node, in_format = waiting.pop()
        yield node, in_format
        inside = in_format or (isinstance(node, Call) and node.function == "format")
        for child in children(node):
            if not isinstance(child, Literal) and id(child) not in seen:
                seen.add(id(child))
                waiting.append((child, inside))


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
