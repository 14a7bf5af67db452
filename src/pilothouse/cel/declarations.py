"""What an environment declares: functions with their overloads, message types, and libraries that bundle them.

An overload knows its types, its implementation and what a call costs. The implementation gets evaluated arguments, the
target first. A function may have one implementation for all overloads (`any_overload`), as arithmetic has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from pilothouse.cel.macros import Macros
from pilothouse.cel.types import Type, parse_signature
from pilothouse.cel.values import type_of_value

Implementation = Callable[..., Any]
RunCost = Callable[[tuple[Any, ...], Any], int]


class Overload:
    """One signature of a function."""

    __slots__ = ("cost", "has_parameters", "id", "implementation", "member", "parameters", "result")

    def __init__(
        self, id: str, signature: str, implementation: Implementation | None = None, cost: RunCost | None = None
    ) -> None:
        self.id = id
        self.member, self.parameters, self.result = parse_signature(signature)
        self.has_parameters = _mentions_parameter((*self.parameters, self.result))
        self.implementation = implementation
        self.cost = cost

    def accepts(self, arguments: tuple[Any, ...]) -> bool:
        """Tell whether values met at run time fit the signature."""
        if len(arguments) != len(self.parameters):
            return False
        return all(_fits(kind, value) for kind, value in zip(self.parameters, arguments, strict=True))


def _mentions_parameter(types: Iterable[Type]) -> bool:
    return any(kind.kind == "param" or _mentions_parameter(kind.parameters) for kind in types)


def _fits(kind: Type, value: Any) -> bool:
    if kind.kind in ("dyn", "param", "any"):
        return True
    found = type_of_value(value)
    if found.kind != kind.kind or found.name != kind.name:
        return False
    if kind.kind == "list" and kind.parameters[0].kind not in ("dyn", "param") and value:
        return _fits(kind.parameters[0], value[0])
    return True


class Function:
    """A named function with its overloads in order of declaration."""

    __slots__ = ("any_overload", "name", "overloads")

    def __init__(self, name: str, overloads: Iterable[Overload], any_overload: Implementation | None = None) -> None:
        self.name = name
        self.overloads = list(overloads)
        self.any_overload = any_overload

    def merged(self, other: Function) -> Function:
        seen = {overload.id for overload in self.overloads}
        added = [overload for overload in other.overloads if overload.id not in seen]
        return Function(self.name, [*self.overloads, *added], self.any_overload or other.any_overload)


class Library:
    """Functions, macros and type names that come together."""

    __slots__ = ("functions", "macros", "types")

    def __init__(
        self, functions: Iterable[Function] = (), macros: Macros | None = None, types: Iterable[Type] = ()
    ) -> None:
        self.functions = tuple(functions)
        self.macros: Macros = macros or {}
        self.types = tuple(types)


class StructType(Protocol):
    """A message type: its fields as expressions name them."""

    type: Type

    def field(self, name: str) -> Type | None:
        """Return the type of a field, or None."""

    def property(self, name: str) -> str:
        """Return the key under which values keep a field."""


class TypeProvider(Protocol):
    """Finds message types by name."""

    def find(self, name: str) -> StructType | None: ...


class Structs:
    """Message types kept in a mapping; the usual provider."""

    __slots__ = ("_types",)

    def __init__(self, types: Mapping[str, StructType]) -> None:
        self._types = types

    def find(self, name: str) -> StructType | None:
        return self._types.get(name)


class PlainStruct:
    """A message type with given fields; unknown fields have `unknown` as their type, or do not exist."""

    __slots__ = ("_fields", "_unknown", "type")

    def __init__(self, kind: Type, fields: Mapping[str, Type], unknown: Type | None = None) -> None:
        self.type = kind
        self._fields = fields
        self._unknown = unknown

    def field(self, name: str) -> Type | None:
        return self._fields.get(name, self._unknown)

    def property(self, name: str) -> str:
        return name
