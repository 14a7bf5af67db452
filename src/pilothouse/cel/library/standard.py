"""The standard definitions: operators, conversions, string tests and parts of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.cel import arithmetic, conversions
from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.library import times
from pilothouse.cel.macros import STANDARD
from pilothouse.cel.regular_expressions import matches
from pilothouse.cel.types import BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT
from pilothouse.cel.values import LIST, MAP, equals, fail

_ORDERED = (
    ("bool", "bool", "bool"), ("int64", "int", "int"), ("int64_double", "int", "double"),
    ("int64_uint64", "int", "uint"), ("uint64", "uint", "uint"), ("uint64_double", "uint", "double"),
    ("uint64_int64", "uint", "int"), ("double", "double", "double"), ("double_int64", "double", "int"),
    ("double_uint64", "double", "uint"), ("string", "string", "string"), ("bytes", "bytes", "bytes"),
    ("timestamp", "timestamp", "timestamp"), ("duration", "duration", "duration"),
)  # fmt: skip


def _operator(name: str, implementation: Callable[..., Any] | None, *signatures: tuple[str, str]) -> Function:
    return Function(name, [Overload(id, signature) for id, signature in signatures], implementation)


def _ordering(name: str, word: str, implementation: Callable[..., Any]) -> Function:
    return _operator(name, implementation, *((f"{word}_{id}", f"({a}, {b}) -> bool") for id, a, b in _ORDERED))


def _conversion(name: str, implementation: Callable[[Any], Any], result: str, *sources: tuple[str, str]) -> Function:
    return Function(name, [Overload(id, f"({source}) -> {result}", implementation) for id, source in sources])


def _size(value: Any) -> int:
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    return fail("no such overload: size")


def _text(name: str) -> Callable[[Any, Any], bool]:
    def apply(text: Any, part: Any) -> bool:
        if text.__class__ is not str or part.__class__ is not str:
            fail("no such overload")
        return bool(getattr(text, name)(part))

    return apply


def _contains(text: Any, part: Any) -> bool:
    if text.__class__ is not str or part.__class__ is not str:
        fail("no such overload")
    return part in text


def _identity(value: Any) -> Any:
    return value


_OPERATORS = (
    _operator("_?_:_", None, ("conditional", "(bool, A, A) -> A")),
    _operator("_&&_", None, ("logical_and", "(bool, bool) -> bool")),
    _operator("_||_", None, ("logical_or", "(bool, bool) -> bool")),
    _operator("!_", arithmetic.negate_bool, ("logical_not", "(bool) -> bool")),
    _operator("@not_strictly_false", None, ("not_strictly_false", "(bool) -> bool")),
    _operator("_==_", equals, ("equals", "(A, A) -> bool")),
    _operator("_!=_", arithmetic.not_equals, ("not_equals", "(A, A) -> bool")),
    _operator(
        "_+_",
        arithmetic.add,
        ("add_bytes", "(bytes, bytes) -> bytes"),
        ("add_double", "(double, double) -> double"),
        ("add_duration_duration", "(duration, duration) -> duration"),
        ("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
        ("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
        ("add_int64", "(int, int) -> int"),
        ("add_list", "(list(A), list(A)) -> list(A)"),
        ("add_string", "(string, string) -> string"),
        ("add_uint64", "(uint, uint) -> uint"),
    ),
    _operator(
        "_/_",
        arithmetic.divide,
        ("divide_double", "(double, double) -> double"),
        ("divide_int64", "(int, int) -> int"),
        ("divide_uint64", "(uint, uint) -> uint"),
    ),
    _operator(
        "_%_", arithmetic.modulo, ("modulo_int64", "(int, int) -> int"), ("modulo_uint64", "(uint, uint) -> uint")
    ),
    _operator(
        "_*_",
        arithmetic.multiply,
        ("multiply_double", "(double, double) -> double"),
        ("multiply_int64", "(int, int) -> int"),
        ("multiply_uint64", "(uint, uint) -> uint"),
    ),
    _operator("-_", arithmetic.negate, ("negate_double", "(double) -> double"), ("negate_int64", "(int) -> int")),
    _operator(
        "_-_",
        arithmetic.subtract,
        ("subtract_double", "(double, double) -> double"),
        ("subtract_duration_duration", "(duration, duration) -> duration"),
        ("subtract_int64", "(int, int) -> int"),
        ("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
        ("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
        ("subtract_uint64", "(uint, uint) -> uint"),
    ),
    _ordering("_<_", "less", arithmetic.less),
    _ordering("_<=_", "less_equals", arithmetic.less_equals),
    _ordering("_>_", "greater", arithmetic.greater),
    _ordering("_>=_", "greater_equals", arithmetic.greater_equals),
    _operator("_[_]", arithmetic.index, ("index_list", "(list(A), int) -> A"), ("index_map", "(map(A, B), A) -> B")),
    _operator("@in", arithmetic.contains, ("in_list", "(A, list(A)) -> bool"), ("in_map", "(A, map(A, B)) -> bool")),
    Function(
        "size",
        [
            overload
            for kind, name in (("bytes", "bytes"), ("list(A)", "list"), ("map(A, B)", "map"), ("string", "string"))
            for overload in (
                Overload(f"size_{name}", f"({kind}) -> int"),
                Overload(f"{name}_size", f"{kind}.() -> int"),
            )
        ],
        _size,
    ),
)

_CONVERSIONS = (
    Function("type", [Overload("type", "(A) -> type(A)")], conversions.to_type),
    _conversion("bool", conversions.to_bool, "bool", ("bool_to_bool", "bool"), ("string_to_bool", "string")),
    _conversion("bytes", conversions.to_bytes, "bytes", ("bytes_to_bytes", "bytes"), ("string_to_bytes", "string")),
    _conversion(
        "double", conversions.to_double, "double", ("double_to_double", "double"), ("int64_to_double", "int"),
        ("string_to_double", "string"), ("uint64_to_double", "uint"),
    ),
    _conversion(
        "duration", conversions.to_duration, "duration", ("duration_to_duration", "duration"),
        ("string_to_duration", "string"),
    ),
    Function("dyn", [Overload("to_dyn", "(A) -> dyn")], _identity),
    _conversion(
        "int", conversions.to_int, "int", ("int64_to_int64", "int"), ("double_to_int64", "double"),
        ("duration_to_int64", "duration"), ("string_to_int64", "string"), ("timestamp_to_int64", "timestamp"),
        ("uint64_to_int64", "uint"),
    ),
    _conversion(
        "string", conversions.to_string, "string", ("string_to_string", "string"), ("bool_to_string", "bool"),
        ("bytes_to_string", "bytes"), ("double_to_string", "double"), ("duration_to_string", "duration"),
        ("int64_to_string", "int"), ("timestamp_to_string", "timestamp"), ("uint64_to_string", "uint"),
    ),
    _conversion(
        "timestamp", conversions.to_timestamp, "timestamp", ("timestamp_to_timestamp", "timestamp"),
        ("int64_to_timestamp", "int"), ("string_to_timestamp", "string"),
    ),
    _conversion(
        "uint", conversions.to_uint, "uint", ("uint64_to_uint64", "uint"), ("double_to_uint64", "double"),
        ("int64_to_uint64", "int"), ("string_to_uint64", "string"),
    ),
)  # fmt: skip

_STRINGS = (
    Function("contains", [Overload("contains_string", "string.(string) -> bool")], _contains),
    Function("endsWith", [Overload("ends_with_string", "string.(string) -> bool")], _text("endswith")),
    Function("startsWith", [Overload("starts_with_string", "string.(string) -> bool")], _text("startswith")),
    Function(
        "matches",
        [Overload("matches", "(string, string) -> bool"), Overload("matches_string", "string.(string) -> bool")],
        matches,
    ),
)

STANDARD_LIBRARY = Library(
    (*_OPERATORS, *_CONVERSIONS, *_STRINGS, *times.FUNCTIONS),
    STANDARD,
    (BOOL, BYTES, DOUBLE, DURATION, INT, LIST, MAP, NULL, STRING, TIMESTAMP, TYPE, UINT),
)
