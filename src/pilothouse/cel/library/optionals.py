"""Optional values: making, testing and unwrapping them; maps built by two-variable macros.

`or` and `orValue` evaluate their argument only when needed and live with the planner.
"""

from __future__ import annotations

from typing import Any

from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.macros import OPTIONAL as OPTIONAL_MACROS
from pilothouse.cel.macros import TWO_VARIABLES
from pilothouse.cel.values import NONE, OPTIONAL, Duration, Optional, Timestamp, fail, show

_ZERO_TIME = -62135596800 * 1_000_000_000


def _of_non_zero(value: Any) -> Optional:
    if value is None or value.__class__ is bool:
        return NONE if not value else Optional(value)
    if value.__class__ is Duration:
        return NONE if value.nanoseconds == 0 else Optional(value)
    if value.__class__ is Timestamp:
        return NONE if value.nanoseconds == _ZERO_TIME else Optional(value)
    if value.__class__ is Optional:
        return Optional(value) if value.present and _of_non_zero(value.value).present else NONE
    if isinstance(value, str | bytes | list | dict | int | float):
        return Optional(value) if value else NONE
    return Optional(value)


def _value(optional: Optional) -> Any:
    return optional.value if optional.present else fail("optional.none() dereference")


def _unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if item.__class__ is not Optional:
            fail(f"value {show(item)} is not optional")
    return [item.value for item in items if item.present]


def _none() -> Optional:
    return NONE


def _first(items: list[Any]) -> Optional:
    return Optional(items[0]) if items else NONE


def _last(items: list[Any]) -> Optional:
    return Optional(items[-1]) if items else NONE


OPTIONAL_LIBRARY = Library(
    (
        Function("optional.of", [Overload("optional_of", "(V) -> optional(V)", Optional)]),
        Function("optional.ofNonZeroValue", [Overload("optional_ofNonZeroValue", "(V) -> optional(V)", _of_non_zero)]),
        Function("optional.none", [Overload("optional_none", "() -> optional(V)", _none)]),
        Function("value", [Overload("optional_value", "optional(V).() -> V", _value)]),
        Function("hasValue", [Overload("optional_hasValue", "optional(V).() -> bool", lambda item: item.present)]),
        Function("or", [Overload("optional_or_optional", "optional(V).(optional(V)) -> optional(V)")]),
        Function("orValue", [Overload("optional_orValue_value", "optional(V).(V) -> V")]),
        Function("_?._", [Overload("select_optional_field", "(dyn, string) -> optional(V)")]),
        Function(
            "_[?_]",
            [
                Overload("list_optindex_optional_int", "(list(V), int) -> optional(V)"),
                Overload("optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
                Overload("map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
                Overload("optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
            ],
        ),
        Function(
            "_[_]",
            [
                Overload("optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
                Overload("optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
            ],
        ),
        Function("last", [Overload("list_last", "list(V).() -> optional(V)", _last)]),
        Function("first", [Overload("list_first", "list(V).() -> optional(V)", _first)]),
        Function("optional.unwrap", [Overload("optional_unwrap", "(list(optional(V))) -> list(V)", _unwrap)]),
        Function("unwrapOpt", [Overload("optional_unwrapOpt", "list(optional(V)).() -> list(V)", _unwrap)]),
    ),
    OPTIONAL_MACROS,
    (OPTIONAL,),
)
TWO_VARIABLE_LIBRARY = Library(
    (
        Function(
            "cel.@mapInsert",
            [
                Overload("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)"),
                Overload("@mapInsert_map_map", "(map(K, V), map(K, V)) -> map(K, V)"),
            ],
        ),
    ),
    TWO_VARIABLES,
)
