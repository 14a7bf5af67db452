"""Operators of the language on values: 64-bit arithmetic that reports overflow, concatenation, order and membership.

Each operator comes for any operands, choosing by what it meets at run time. Where types are known beforehand the
planner takes one of the narrower functions instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pilothouse.cel.values import (
    COMPARABLE,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    Duration,
    EvaluationError,
    KeyedList,
    SetList,
    Timestamp,
    UInt,
    compare,
    equals,
    fail,
    is_equal,
    item_key,
    map_key,
    set_key,
    show,
    type_of_value,
)

MIN_TIME, MAX_TIME = -62135596800, 253402300799
_BILLION = 1_000_000_000


def checked(value: int) -> int:
    if MIN_INT <= value <= MAX_INT:
        return value
    raise EvaluationError("integer overflow")


def checked_unsigned(value: int) -> UInt:
    if 0 <= value <= MAX_UINT:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def checked_duration(nanoseconds: int) -> Duration:
    if MIN_INT <= nanoseconds <= MAX_INT:
        return Duration(nanoseconds)
    raise EvaluationError("duration overflow")


def checked_timestamp(nanoseconds: int, offset: int) -> Timestamp:
    if MIN_TIME <= nanoseconds // _BILLION <= MAX_TIME:
        return Timestamp(nanoseconds, offset)
    raise EvaluationError("timestamp overflow")


def _refuse(operator: str, value: Any, able: frozenset[type]) -> Any:
    """Say that there is no overload: with the operator's name if its left side has neither it nor methods."""
    known = value.__class__ in able or value.__class__ in _WITH_METHODS
    fail("no such overload" if known else f"no such overload: {operator}")


def add_ints(left: int, right: int) -> int:
    value = left + right
    if MIN_INT <= value <= MAX_INT:
        return value
    raise EvaluationError("integer overflow")


def subtract_ints(left: int, right: int) -> int:
    return checked(left - right)


def multiply_ints(left: int, right: int) -> int:
    return checked(left * right)


def divide_ints(left: int, right: int) -> int:
    if right == 0:
        fail("division by zero")
    quotient = abs(left) // abs(right)
    return checked(quotient if (left < 0) == (right < 0) else -quotient)


def modulo_ints(left: int, right: int) -> int:
    if right == 0:
        fail("modulus by zero")
    if left == MIN_INT and right == -1:
        fail("integer overflow")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def divide_doubles(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


_ADDERS = frozenset({int, UInt, float, str, bytes, list, SetList, KeyedList, Duration, Timestamp})
_SUBTRACTORS = frozenset({int, UInt, float, Duration, Timestamp})
_NUMERIC = frozenset({int, UInt, float})
_WHOLE = frozenset({int, UInt})
_NEGATED = frozenset({bool})
_WITH_METHODS = frozenset({str, Duration, Timestamp})


def add(left: Any, right: Any) -> Any:
    a, b = left.__class__, right.__class__
    if a is b:
        if a is int:
            return add_ints(left, right)
        if a is str or a is float or a is bytes:
            return left + right
        if a is UInt:
            return checked_unsigned(int(left) + int(right))
        if a is Duration:
            return checked_duration(left.nanoseconds + right.nanoseconds)
    if isinstance(left, list) and isinstance(right, list):
        return add_lists(left, right)
    if {a, b} == {Duration, Timestamp}:
        offset = left.offset if a is Timestamp else right.offset
        return checked_timestamp(left.nanoseconds + right.nanoseconds, offset)
    return _refuse("_+_", left, _ADDERS)


def add_lists(left: list[Any], right: list[Any]) -> list[Any]:
    if left.__class__ is SetList:
        seen = {set_key(item) for item in left}
        return SetList([*left, *(item for item in right if set_key(item) not in seen)])
    if isinstance(left, KeyedList):
        merged = {item_key(item, left.keys): item for item in left}
        for item in right:
            merged[item_key(item, left.keys)] = item
        return KeyedList(merged.values(), left.keys)
    return [*left, *right]


def subtract(left: Any, right: Any) -> Any:
    a, b = left.__class__, right.__class__
    if a is b:
        if a is int:
            return checked(left - right)
        if a is float:
            return left - right
        if a is UInt:
            return checked_unsigned(int(left) - int(right))
        if a is Duration:
            return checked_duration(left.nanoseconds - right.nanoseconds)
        if a is Timestamp:
            return Duration(checked(left.nanoseconds - right.nanoseconds))
    if a is Timestamp and b is Duration:
        return checked_timestamp(left.nanoseconds - right.nanoseconds, left.offset)
    return _refuse("_-_", left, _SUBTRACTORS)


def multiply(left: Any, right: Any) -> Any:
    a = left.__class__
    if a is right.__class__ and a in _NUMERIC:
        if a is int:
            return checked(left * right)
        return left * right if a is float else checked_unsigned(int(left) * int(right))
    return _refuse("_*_", left, _NUMERIC)


def divide(left: Any, right: Any) -> Any:
    a = left.__class__
    if a is right.__class__ and a in _NUMERIC:
        if a is int:
            return divide_ints(left, right)
        if a is float:
            return divide_doubles(left, right)
        return UInt(int(left) // int(right)) if right else fail("division by zero")
    return _refuse("_/_", left, _NUMERIC)


def modulo(left: Any, right: Any) -> Any:
    a = left.__class__
    if a is right.__class__ and a in _WHOLE:
        if a is int:
            return modulo_ints(left, right)
        return UInt(int(left) % int(right)) if right else fail("modulus by zero")
    return _refuse("_%_", left, _WHOLE)


def negate(value: Any) -> Any:
    if value.__class__ is int:
        return checked(-value)
    if value.__class__ is float:
        return -value
    if value.__class__ is Duration:
        return checked_duration(-value.nanoseconds)
    return _refuse("-_", value, _NEGATED)


def negate_bool(value: Any) -> bool:
    if value.__class__ is bool:
        return not value
    return fail("no such overload")


def _ordering(operator: str, test: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    def apply(left: Any, right: Any) -> bool:
        if left.__class__ not in COMPARABLE:
            fail(f"no such overload: {operator}")
        return test(compare(left, right))

    return apply


less = _ordering("_<_", lambda order: order < 0)
less_equals = _ordering("_<=_", lambda order: order <= 0)
greater = _ordering("_>_", lambda order: order > 0)
greater_equals = _ordering("_>=_", lambda order: order >= 0)


def not_equals(left: Any, right: Any) -> bool:
    return not equals(left, right)


def contains(element: Any, container: Any) -> bool:
    """`element in container`."""
    if isinstance(container, dict):
        return map_key(element) in container if _is_key(element) else fail("no such overload")
    if isinstance(container, list):
        return any(is_equal(item, element) for item in container)
    return fail("no such overload")


_KEYS = frozenset({str, int, UInt, bool, float})


def _is_key(value: Any) -> bool:
    return value.__class__ in _KEYS


def index(container: Any, key: Any) -> Any:
    """`container[key]`."""
    if isinstance(container, dict):
        if not _is_key(key):
            fail("no such overload")
        try:
            return container[map_key(key)]
        except KeyError:
            fail(f"no such key: {show(key)}")
    if isinstance(container, list):
        position = list_position(key)
        if 0 <= position < len(container):
            return container[position]
        fail(f"index out of bounds: {show(key)}")
    getter = getattr(container, "cel_get", None)
    if getter is not None:
        return getter(key)
    return fail(f"no such key: {show(key)}")


def list_position(key: Any) -> int:
    if key.__class__ is int or key.__class__ is UInt:
        return int(key)
    if key.__class__ is float:
        if key.is_integer():
            return int(key)
        fail(f"unsupported index value {show(key)} in list")
    return fail(f"unsupported index type '{type_of_value(key).name}' in list")


def find(container: Any, key: Any) -> tuple[bool, Any]:
    """Look a key or position up: whether it is there, and what it holds."""
    if isinstance(container, dict):
        kept = map_key(key) if _is_key(key) else None
        return (kept in container, container.get(kept)) if kept is not None else (False, None)
    if isinstance(container, list):
        position = list_position(key)
        return (True, container[position]) if 0 <= position < len(container) else (False, None)
    return False, None
