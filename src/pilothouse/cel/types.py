"""Types of the expression language and the rules by which one stands for another.

A `Type` is a value: kind, name and parameters. `Substitution` keeps what the type parameters of a checked expression
were found to be; `assignable` extends it only when the whole comparison succeeds, as unification demands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

ANY_KINDS = frozenset({"dyn", "any"})
_NULLABLE_KINDS = frozenset({"opaque", "struct", "any", "duration", "timestamp"})
_SAME_NAME_KINDS = frozenset(
    {"bool", "bytes", "double", "int", "string", "uint", "any", "duration", "timestamp", "struct"}
)


class Type:
    """One type: `kind` says how it behaves, `name` what it is called, `parameters` what it holds."""

    __slots__ = ("kind", "name", "parameters")

    def __init__(self, kind: str, name: str, parameters: tuple[Type, ...] = ()) -> None:
        self.kind = kind
        self.name = name
        self.parameters = parameters

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return self.kind == other.kind and self.name == other.name and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.kind, self.name, len(self.parameters)))

    def __repr__(self) -> str:
        return f"Type({self})"

    def __str__(self) -> str:
        if self.kind == "opaque" and self.name == "function":
            return format_signature(self.parameters[1:], False) + " -> " + str(self.parameters[0])
        if self.kind in _OWN_WORDS:
            return _OWN_WORDS[self.kind]
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


_OWN_WORDS = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
    "unspecified": "",
}

BOOL = Type("bool", "bool")
BYTES = Type("bytes", "bytes")
DOUBLE = Type("double", "double")
INT = Type("int", "int")
STRING = Type("string", "string")
UINT = Type("uint", "uint")
NULL = Type("null", "null_type")
DYN = Type("dyn", "dyn")
ANY = Type("any", "google.protobuf.Any")
ERROR = Type("error", "*error*")
UNSPECIFIED = Type("unspecified", "")
DURATION = Type("duration", "google.protobuf.Duration")
TIMESTAMP = Type("timestamp", "google.protobuf.Timestamp")
TYPE = Type("type", "type")


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", "type", (value,))


def struct(name: str) -> Type:
    return Type("struct", name)


def opaque(name: str) -> Type:
    return Type("opaque", name)


def parameter(name: str) -> Type:
    return Type("param", name)


def is_dyn(kind: Type) -> bool:
    return kind.kind in ANY_KINDS


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    if kind.kind == "opaque" and kind.name == "optional_type":
        return kind.parameters[0], True
    return kind, False


def format_signature(arguments: Sequence[Type], member: bool) -> str:
    if not member:
        return f"({', '.join(map(str, arguments))})"
    return f"{arguments[0]}.({', '.join(map(str, arguments[1:]))})"


class Substitution:
    """What type parameters stand for, found while checking one expression."""

    __slots__ = ("bindings",)

    def __init__(self, bindings: dict[str, Type] | None = None) -> None:
        self.bindings: dict[str, Type] = bindings if bindings is not None else {}

    def apply(self, kind: Type, *, free_as_dyn: bool = False) -> Type:
        if kind.kind == "param":
            bound = self.bindings.get(kind.name)
            if bound is not None:
                return self.apply(bound, free_as_dyn=free_as_dyn)
            return DYN if free_as_dyn else kind
        if not kind.parameters:
            return kind
        parameters = tuple(self.apply(item, free_as_dyn=free_as_dyn) for item in kind.parameters)
        if all(new is old for new, old in zip(parameters, kind.parameters, strict=True)):
            return kind
        return Type(kind.kind, kind.name, parameters)

    def assign(self, wanted: Sequence[Type], given: Sequence[Type]) -> bool:
        """Tell whether every pair agrees, and keep what that taught about type parameters only if all do."""
        if len(wanted) != len(given):
            return False
        trial = _Trial(self.bindings)
        if all(trial.assignable(left, right) for left, right in zip(wanted, given, strict=True)):
            return True
        trial.undo()
        return False


class _Trial:
    """One attempt to unify types, remembering what to take back."""

    __slots__ = ("bindings", "changes")

    def __init__(self, bindings: dict[str, Type]) -> None:
        self.bindings = bindings
        self.changes: list[tuple[str, Type | None]] = []

    def undo(self) -> None:
        for name, previous in reversed(self.changes):
            if previous is None:
                del self.bindings[name]
            else:
                self.bindings[name] = previous

    def assignable(self, left: Type, right: Type) -> bool:
        if right.kind == "param":
            valid, bound = self._substitutes(left, right)
            if valid or bound:
                return valid
        if left.kind == "param":
            return self._substitutes(right, left)[0]
        if left.kind in ANY_KINDS or right.kind in ANY_KINDS or left.kind == "error" or right.kind == "error":
            return True
        if left.kind == "null":
            return right.kind == "null" or right.kind in _NULLABLE_KINDS
        if right.kind == "null":
            return left.kind in _NULLABLE_KINDS
        if left.kind in _SAME_NAME_KINDS:
            return left.kind == right.kind and left.name == right.name
        if left.kind == "type":
            return right.kind == "type"
        if left.kind not in ("opaque", "list", "map"):
            return False
        return (
            left.kind == right.kind
            and left.name == right.name
            and len(left.parameters) == len(right.parameters)
            and all(self.assignable(a, b) for a, b in zip(left.parameters, right.parameters, strict=True))
        )

    def _substitutes(self, kind: Type, variable: Type) -> tuple[bool, bool]:
        """Tell whether `kind` may stand for `variable`, and whether the variable was bound before."""
        if kind == variable:
            return True, True
        bound = self.bindings.get(variable.name)
        if bound is not None:
            if kind == bound:
                return True, True
            if not self.assignable(kind, bound):
                return False, True
            general = most_general(kind, bound)
            if not self._occurs(variable, general):
                self._bind(variable.name, general)
            return True, True
        if self._occurs(variable, kind):
            return False, False
        self._bind(variable.name, kind)
        return True, False

    def _bind(self, name: str, kind: Type) -> None:
        self.changes.append((name, self.bindings.get(name)))
        self.bindings[name] = kind

    def _occurs(self, variable: Type, within: Type) -> bool:
        if within == variable:
            return True
        if within.kind == "param":
            bound = self.bindings.get(within.name)
            return bound is not None and self._occurs(variable, bound)
        return any(self._occurs(variable, item) for item in within.parameters)


def most_general(left: Type, right: Type) -> Type:
    return left if _less_specific(left, right) else right


def _less_specific(left: Type, right: Type) -> bool:
    if left.kind in ANY_KINDS or left.kind == "param":
        return True
    if right.kind in ANY_KINDS or right.kind == "param" or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind in ("opaque", "list", "map"):
        return (
            left.name == right.name
            and len(left.parameters) == len(right.parameters)
            and all(_less_specific(a, b) for a, b in zip(left.parameters, right.parameters, strict=True))
        )
    return left == right


_SIMPLE = {
    "bool": BOOL,
    "bytes": BYTES,
    "double": DOUBLE,
    "int": INT,
    "string": STRING,
    "uint": UINT,
    "null": NULL,
    "dyn": DYN,
    "duration": DURATION,
    "timestamp": TIMESTAMP,
    "type": TYPE,
}


@lru_cache(maxsize=512)
def parse_type(text: str) -> Type:
    """Read a type written as in `map(string, list(A))`; single capital letters are type parameters."""
    text = text.strip()
    if text in _SIMPLE:
        return _SIMPLE[text]
    if len(text) == 1 and text.isupper():
        return parameter(text)
    head, bracket, rest = text.partition("(")
    if bracket:
        inner = [parse_type(item) for item in _split(rest[:-1])]
        name = {"optional": "optional_type"}.get(head, head)
        return Type("opaque" if head == "optional" else head, name, tuple(inner))
    if text.startswith("!"):
        return opaque(text[1:])
    return struct(text)


def _split(text: str) -> list[str]:
    depth, start, found = 0, 0, []
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            found.append(text[start:index])
            start = index + 1
    return [*found, text[start:]] if text.strip() else []


def parse_signature(text: str) -> tuple[bool, tuple[Type, ...], Type]:
    """Read `string.(int) -> bool` or `(string, int) -> bool`: member or not, arguments, result."""
    left, result = text.rsplit("->", 1)
    left = left.strip()
    member = not left.startswith("(")
    arguments: list[str] = []
    if member:
        target, left = left.split(".(", 1)
        arguments.append(target)
    else:
        left = left[1:]
    arguments.extend(_split(left[:-1]))
    return member, tuple(parse_type(item) for item in arguments), parse_type(result)
