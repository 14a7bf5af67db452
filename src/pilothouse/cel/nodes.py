"""The syntax tree of an expression.

Nodes carry the offset they are reported at. The checker writes `type`, and into calls `overloads`; it turns a qualified
name that denotes a variable or a type into an `Ident`. Logical operators are flat: `a && b && c` is one call.
"""

from __future__ import annotations

from typing import Any

from pilothouse.cel.types import DYN, Type


class Node:
    """Any expression."""

    __slots__ = ("offset", "type")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.type: Type = DYN


class Literal(Node):
    """A constant; `value` is a value of the evaluator."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name; after checking, `constant` holds the type value if the name denotes a type."""

    __slots__ = ("constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.constant: Type | None = None


class Select(Node):
    """`operand.field`, or `has(operand.field)` when `test` is set; `ident` replaces it if the checker says so."""

    __slots__ = ("field", "ident", "operand", "test")

    def __init__(self, offset: int, operand: Node, field: str, test: bool = False) -> None:
        super().__init__(offset)
        self.operand = operand
        self.field = field
        self.test = test
        self.ident: Ident | None = None


class Call(Node):
    """A function or operator; `target` is set for `target.function(...)`."""

    __slots__ = ("arguments", "function", "overloads", "target")

    def __init__(self, offset: int, function: str, arguments: list[Node], target: Node | None = None) -> None:
        super().__init__(offset)
        self.function = function
        self.arguments = arguments
        self.target = target
        self.overloads: list[Any] = []


class ListNode(Node):
    """`[a, ?b]`."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset)
        self.elements = elements
        self.optional = optional


class Entry:
    """`key: value` of a map or `field: value` of a message, at the colon."""

    __slots__ = ("key", "offset", "optional", "value")

    def __init__(self, offset: int, key: Any, value: Node, optional: bool) -> None:
        self.offset = offset
        self.key = key
        self.value = value
        self.optional = optional


class MapNode(Node):
    """`{k: v}`."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.entries = entries


class StructNode(Node):
    """`Name{field: value}`."""

    __slots__ = ("entries", "name")

    def __init__(self, offset: int, name: str, entries: list[Entry]) -> None:
        super().__init__(offset)
        self.name = name
        self.entries = entries


class Comprehension(Node):
    """A fold over a list or a map; `second` names the value variable of the two-variable form."""

    __slots__ = ("accumulator", "condition", "first", "initial", "range", "result", "second", "step")

    def __init__(
        self,
        offset: int,
        range: Node,
        first: str,
        second: str,
        accumulator: str,
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> None:
        super().__init__(offset)
        self.range = range
        self.first = first
        self.second = second
        self.accumulator = accumulator
        self.initial = initial
        self.condition = condition
        self.step = step
        self.result = result
