"""List functions: those Kubernetes adds (sums, extremes, positions) and the lists and sets extensions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from pilothouse.cel.arithmetic import add
from pilothouse.cel.declarations import Function, Library, Overload
from pilothouse.cel.macros import SORT_BY
from pilothouse.cel.steps import MAX_LIST
from pilothouse.cel.values import (
    COMPARABLE,
    CostLimitExceeded,
    Duration,
    UInt,
    compare,
    equals,
    fail,
    is_equal,
    set_key,
    size_of,
    type_name,
)

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_TYPE_NAMES = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}
_ZEROS = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_MAX_RANGE = 1_000_000


def _is_sorted(items: list[Any]) -> bool:
    return all(compare(left, right) <= 0 for left, right in pairwise(items))


def _sum(zero: Any) -> Callable[[list[Any]], Any]:
    return lambda items: functools.reduce(add, items, zero)


def _extreme(name: str, wanted: int) -> Callable[[list[Any]], Any]:
    def apply(items: list[Any]) -> Any:
        if not items:
            fail(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if compare(best, item) == wanted:
                best = item
        return best

    return apply


def _index_of(items: list[Any], value: Any) -> int:
    return next((position for position, item in enumerate(items) if is_equal(item, value)), -1)


def _last_index_of(items: list[Any], value: Any) -> int:
    return next((position for position in range(len(items) - 1, -1, -1) if is_equal(items[position], value)), -1)


def _includes(target: Any, value: Any) -> bool:
    if isinstance(target, list):
        return any(is_equal(item, value) for item in target)
    return equals(target, value)


KUBERNETES_LISTS = Library(
    (
        Function(
            "isSorted",
            [Overload(f"list_{name}_is_sorted_bool", f"list({name}).() -> bool", _is_sorted) for name in _COMPARABLE],
        ),
        Function(
            "sum",
            [
                Overload(f"list_{name}_sum_{name}", f"list({name}).() -> {name}", _sum(zero))
                for name, zero in _ZEROS.items()
            ],
        ),
        *(
            Function(
                word,
                [
                    Overload(f"list_{name}_{word}_{name}", f"list({name}).() -> {name}", _extreme(word, wanted))
                    for name in _COMPARABLE
                ],
            )
            for word, wanted in (("max", -1), ("min", 1))
        ),
        Function("indexOf", [Overload("list_a_index_of_int", "list(A).(A) -> int", _index_of)]),
        Function("lastIndexOf", [Overload("list_a_last_index_of_int", "list(A).(A) -> int", _last_index_of)]),
    )
)
INCLUDES = Library((Function("includes", [Overload("list_includes_dyn_dyn", "dyn.(dyn) -> bool", _includes)]),))


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        fail(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        fail(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        fail(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if not isinstance(items, list):
        fail(f"no such overload: {type_name(items)}.flatten()")
    if depth < 0:
        fail("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            flat.extend(_flatten(item, depth - 1))
        else:
            flat.append(item)
        if len(flat) > MAX_LIST:
            raise CostLimitExceeded
    return flat


def _sort(items: list[Any]) -> list[Any]:
    return _sort_by_keys(items, items)


def _sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        fail(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got"
            f" {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    if keys[0].__class__ not in COMPARABLE:
        fail("list elements must be comparable")
    if len(keys) > 1 and any(key.__class__ is not keys[0].__class__ for key in keys):
        fail("list elements must have the same type")
    by_key = functools.cmp_to_key(compare)
    order = sorted(range(len(keys)), key=lambda position: by_key(keys[position]))
    return [items[position] for position in order]


def _range(count: int) -> list[int]:
    if count < 0:
        fail(f"lists.range: size must be non-negative, got {count}")
    if count > _MAX_RANGE:
        raise CostLimitExceeded  # its cost alone exceeds the limit
    return list(range(count))


def _distinct(items: list[Any]) -> list[Any]:
    seen: set[Any] = set()
    kept: list[Any] = []
    for item in items:
        key = set_key(item)
        if key not in seen:
            seen.add(key)
            kept.append(item)
    return kept


def _allocating(size: Callable[[tuple[Any, ...], Any], float]) -> Callable[[tuple[Any, ...], Any], int]:
    return lambda arguments, result: int(size(arguments, result)) + 11


def _comparing_all(position: int) -> Callable[[tuple[Any, ...], Any], int]:
    def size(arguments: tuple[Any, ...], result: Any) -> float:
        items = arguments[position]
        factor = 2.1 if items and type_name(items[0]) in ("string", "bytes") else 2.0
        return len(items) * len(items) * factor

    return _allocating(size)


_OUTPUT = _allocating(lambda arguments, result: size_of(result))
_FLAT = _allocating(lambda arguments, result: size_of(arguments[0]) * (arguments[1] if len(arguments) == 2 else 1))

EXTENDED_LISTS = Library(
    (
        Function("slice", [Overload("list_slice", "list(T).(int, int) -> list(T)", _slice, _OUTPUT)]),
        Function(
            "flatten",
            [
                Overload("list_flatten", "list(list(T)).() -> list(T)", _flatten, _FLAT),
                Overload("list_flatten_int", "list(dyn).(int) -> list(dyn)", _flatten, _FLAT),
            ],
            _flatten,
        ),
        Function(
            "sort",
            [
                Overload(
                    f"list_{_TYPE_NAMES.get(name, name)}_sort",
                    f"list({name}).() -> list({name})",
                    _sort,
                    _comparing_all(0),
                )
                for name in _COMPARABLE
            ],
        ),
        Function(
            "@sortByAssociatedKeys",
            [
                Overload(
                    f"list_{_TYPE_NAMES.get(name, name)}_sortByAssociatedKeys",
                    f"list(T).(list({name})) -> list(T)",
                    _sort_by_keys,
                    _comparing_all(1),
                )
                for name in _COMPARABLE
            ],
        ),
        Function("lists.range", [Overload("lists_range", "(int) -> list(int)", _range, _OUTPUT)]),
        Function("reverse", [Overload("list_reverse", "list(T).() -> list(T)", lambda items: items[::-1], _OUTPUT)]),
        Function("distinct", [Overload("list_distinct", "list(T).() -> list(T)", _distinct, _comparing_all(0))]),
    ),
    SORT_BY,
)


def _contains_all(items: list[Any], part: list[Any]) -> bool:
    return all(any(is_equal(item, wanted) for item in items) for wanted in part)


def _equivalent(left: list[Any], right: list[Any]) -> bool:
    return _contains_all(left, right) and _contains_all(right, left)


def _intersects(left: list[Any], right: list[Any]) -> bool:
    return any(any(is_equal(item, wanted) for item in right) for wanted in left)


def _pairs(factor: int) -> Callable[[tuple[Any, ...], Any], int]:
    return lambda arguments, result: 1 + len(arguments[0]) * len(arguments[1]) * factor


_SETS = (("contains", _contains_all, 1), ("equivalent", _equivalent, 2), ("intersects", _intersects, 1))
SETS = Library(
    Function(
        f"sets.{word}",
        [Overload(f"list_sets_{word}_list", "(list(T), list(T)) -> bool", implementation, _pairs(factor))],
    )
    for word, implementation, factor in _SETS
)
