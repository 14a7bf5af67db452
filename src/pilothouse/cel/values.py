"""Values of the evaluator and what is common to all of them: type, equality, order, size.

Plain Python values stand for CEL values: bool, int, float, str, bytes, None, list and dict. `UInt` marks unsigned
integers; durations, timestamps, optionals and types have classes of their own, and so have the values of libraries,
which name their type in `cel_type`. Map keys that are booleans are stored as `BoolKey`, because Python's True equals 1.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from pilothouse.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)
from pilothouse.machinery.go_quote import format_float

MIN_INT, MAX_INT, MAX_UINT = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
LIST = list_of(DYN)
MAP = map_of(DYN, DYN)
OPTIONAL = optional_of(DYN)


class EvaluationError(Exception):
    """Evaluation failed; `str()` is kube-apiserver's text. Logical operators may absorb it."""


class CostLimitExceeded(EvaluationError):
    """Evaluation was stopped by its cost limit; nothing absorbs this."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def fail(message: str) -> NoReturn:
    raise EvaluationError(message)


class UInt(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class BoolKey:
    """A boolean as a key of a map."""

    __slots__ = ("value",)

    def __init__(self, value: bool) -> None:
        self.value = value


TRUE_KEY, FALSE_KEY = BoolKey(True), BoolKey(False)


class Duration:
    """A length of time in nanoseconds."""

    __slots__ = ("nanoseconds",)
    cel_type = DURATION

    def __init__(self, nanoseconds: int) -> None:
        self.nanoseconds = nanoseconds

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and other.nanoseconds == self.nanoseconds

    def __hash__(self) -> int:
        return hash(("duration", self.nanoseconds))


class Timestamp:
    """A moment in nanoseconds since 1970 UTC; `offset` is the zone it was written in, which printing keeps."""

    __slots__ = ("nanoseconds", "offset")
    cel_type = TIMESTAMP

    def __init__(self, nanoseconds: int, offset: int = 0) -> None:
        self.nanoseconds = nanoseconds
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and other.nanoseconds == self.nanoseconds

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanoseconds))


class Optional:
    """A value that may be absent."""

    __slots__ = ("present", "value")
    cel_type = OPTIONAL

    def __init__(self, value: Any, present: bool = True) -> None:
        self.value = value
        self.present = present


NONE = Optional(None, False)


class SetList(list[Any]):
    """A list of an object whose schema calls it a set: order does not count in comparisons."""

    __slots__ = ()


class KeyedList(list[Any]):
    """A list of an object whose schema correlates items by keys."""

    __slots__ = ("keys",)

    def __init__(self, items: Any, keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys


class Invalid:
    """A value that contradicts its format; touching it fails."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def cel_get(self, key: object) -> Any:
        fail(self.message)

    def __eq__(self, other: object) -> bool:
        return fail(self.message)

    def __hash__(self) -> int:
        return hash(self.message)


class Message(dict[str, Any]):
    """A constructed message, such as `JSONPatch{...}`."""

    __slots__ = ("cel_type",)

    def __init__(self, fields: Any, kind: Type) -> None:
        super().__init__(fields)
        self.cel_type = kind


_TYPES: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
    list: LIST,
    SetList: LIST,
    KeyedList: LIST,
    dict: MAP,
    Type: TYPE,
}


def type_of_value(value: Any) -> Type:
    found = _TYPES.get(value.__class__)
    if found is not None:
        return found
    kind: Type = getattr(value, "cel_type", MAP if isinstance(value, dict) else DYN)
    return kind


def type_name(value: Any) -> str:
    return type_of_value(value).name


def map_key(key: Any) -> Any:
    """Return the form in which a key is kept in a dict."""
    if key.__class__ is bool:
        return TRUE_KEY if key else FALSE_KEY
    return key


def from_map_key(key: Any) -> Any:
    return key.value if key.__class__ is BoolKey else key


_SCALARS = frozenset({str, bytes, bool, int, float, UInt, type(None)})
_NUMBERS = frozenset({int, float, UInt})
_TIMES = frozenset({Duration, Timestamp})


def equals(left: Any, right: Any) -> bool:
    a, b = left.__class__, right.__class__
    if a in _SCALARS or right is None:
        if a is b or (a in _NUMBERS and b in _NUMBERS):
            return bool(left == right)
        return False
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if isinstance(left, dict):
        return isinstance(right, dict) and _equal_maps(left, right)
    if a is Optional:
        return b is Optional and left.present == right.present and (not left.present or equals(left.value, right.value))
    if a is Type:
        return b is Type and left.name == right.name
    if a is not b and a not in _TIMES:
        fail("no such overload")
    return bool(left == right)


def is_equal(left: Any, right: Any, *, otherwise: bool = False) -> bool:
    """Compare values that may be incomparable: searches then find nothing, holders of such items seem equal."""
    try:
        return equals(left, right)
    except EvaluationError:
        return otherwise


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and is_equal(value, right[key], otherwise=True) for key, value in left.items())


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if len(left) != len(right):
        return False
    if left.__class__ is SetList:
        mine, theirs = {set_key(item) for item in left}, {set_key(item) for item in right}
        return mine == theirs
    if left.__class__ is KeyedList:
        return _equal_keyed(left, right)
    return all(is_equal(a, b, otherwise=True) for a, b in zip(left, right, strict=True))


def _equal_keyed(left: Any, right: list[Any]) -> bool:
    mine = {item_key(item, left.keys): item for item in left}
    seen = set()
    for item in right:
        key = item_key(item, left.keys)
        if key not in mine or not equals(mine[key], item):
            return False
        seen.add(key)
    return len(seen) == len(mine)


def set_key(value: Any) -> Any:
    """A hashable stand-in by which members of a set list are compared."""
    if value.__class__ is bool:
        return (bool, value)
    if isinstance(value, list):
        return (list, tuple(map(set_key, value)))
    if isinstance(value, dict):
        return (dict, frozenset((key, set_key(item)) for key, item in value.items()))
    return value


def item_key(item: Any, keys: tuple[str, ...]) -> Any:
    if not isinstance(item, dict):
        return None
    return tuple(set_key(item.get(key)) for key in keys)


def compare(left: Any, right: Any) -> int:
    """Order two values of comparable types: -1, 0 or 1."""
    a, b = left.__class__, right.__class__
    if a in _NUMBERS and b in _NUMBERS:
        if (a is float and math.isnan(left)) or (b is float and math.isnan(right)):
            fail("NaN values cannot be ordered")
    elif a is not b:
        fail("no such overload")
    elif a is Duration or a is Timestamp:
        left, right = left.nanoseconds, right.nanoseconds
    return bool(left > right) - bool(left < right)


COMPARABLE = frozenset({bool, int, float, UInt, str, bytes, Duration, Timestamp})


def size_of(value: Any) -> int:
    """What a value counts for in costs: its length, or 1."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if isinstance(value, Optional) and value.present:
        return size_of(value.value)
    length = getattr(value, "cel_size", None)
    return int(length()) if length is not None else 1


def show(value: Any) -> str:
    """Print a value inside an error message, as Go's %v would."""
    if value.__class__ is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    return format_float(value) if value.__class__ is float else str(value)
