"""What a call costs when it runs, in kube-apiserver's units.

`run_cost` answers with a number when the cost does not depend on values, else with a function of arguments and result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pilothouse.cel.declarations import Overload
from pilothouse.cel.types import Type
from pilothouse.cel.values import size_of

TRAVERSAL = 0.1
REGEX = 0.25
CHECK_COST = 350_000
Cost = Callable[[tuple[Any, ...], Any], int]

CONSTANT_COST = frozenset(
    {
        "serviceAccount", "path", "group", "resource", "subresource", "namespace", "name", "allowed", "reason",
        "error", "errored", "masked", "prefixLength", "family", "isUnspecified", "isLoopback",
        "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger",
        "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major",
        "minor", "patch", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery",
    }
)  # fmt: skip
# Everything else is charged before it runs, so that work beyond the limit is never begun.
# kube-apiserver counts the items of these lists even where computing them failed, and falls over it.
COUNTED_LISTS = frozenset({"sort", "distinct", "@sortByAssociatedKeys"})
COSTED_BY_RESULT = frozenset({"join", "slice", "lists.range", "reverse"})
_FIXED_SIZE = frozenset({"int", "uint", "double", "bool", "duration", "timestamp", "type", "null"})


def scaled(size: int, factor: float) -> int:
    return math.ceil(size * factor)


def _traverse(position: int, factor: float = TRAVERSAL) -> Cost:
    return lambda arguments, result: scaled(size_of(arguments[position]), factor)


def _selector(arguments: tuple[Any, ...], result: Any) -> int:
    return selector_cost(size_of(arguments[1]))


def selector_cost(length: int) -> int:
    return 10 + scaled(length, TRAVERSAL) + scaled(scaled(length, 0.5), 50.0)


def traversal(value: Any) -> int:
    """The cost of walking through all of a value."""
    if isinstance(value, str):
        return int(len(value.encode("utf-8", "surrogatepass")) * TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * TRAVERSAL)
    if isinstance(value, list):
        return sum(map(traversal, value))
    if isinstance(value, dict):
        return sum(traversal(key) + traversal(item) for key, item in value.items())
    return 1


def _regex(arguments: tuple[Any, ...], result: Any) -> int:
    text = math.ceil((1.0 + size_of(arguments[0])) * TRAVERSAL)
    return text * scaled(size_of(arguments[1]), REGEX)


def _smaller(arguments: tuple[Any, ...], result: Any) -> int:
    return scaled(min(size_of(arguments[0]), size_of(arguments[1])), TRAVERSAL)


def _sum(arguments: tuple[Any, ...], result: Any) -> int:
    return scaled(size_of(arguments[0]) + size_of(arguments[1]), TRAVERSAL)


def _contains(arguments: tuple[Any, ...], result: Any) -> int:
    return scaled(size_of(arguments[0]), TRAVERSAL) * scaled(size_of(arguments[1]), TRAVERSAL)


def _in_range(parsed: str, extra: bool) -> Callable[[str], Cost]:
    def build(overload: str) -> Cost:
        def cost(arguments: tuple[Any, ...], result: Any) -> int:
            size = size_of(arguments[0])
            total = scaled(2 * size, TRAVERSAL)
            if extra:
                total += scaled(size, TRAVERSAL) + 1
            return total + (scaled(size_of(arguments[1]), TRAVERSAL) if overload == parsed else 0)

        return cost

    return build


def _validate(arguments: tuple[Any, ...], result: Any) -> int:
    text = math.ceil((1.0 + size_of(arguments[1])) * TRAVERSAL)
    return text * scaled(arguments[0].max_regex_size, REGEX)


_BY_FUNCTION: dict[str, Cost] = {
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        lambda arguments, result: traversal(arguments[0]),
    ),
    **dict.fromkeys(
        (
            "url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "cidr", "isIP", "isCIDR",
            "ip", "quantity", "isQuantity", "semver", "isSemver",
        ),
        _traverse(0),
    ),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _traverse(0, 2 * TRAVERSAL)),
    "join": lambda arguments, result: scaled(size_of(result), 2 * TRAVERSAL),
    "find": _regex,
    "findAll": _regex,
    "validate": _validate,
}  # fmt: skip
_BY_OVERLOAD: dict[str, Cost] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _traverse(1)),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _traverse(0)),
    "in_list": lambda arguments, result: size_of(arguments[1]),
    **dict.fromkeys(
        (
            "less_string", "greater_string", "less_equals_string", "greater_equals_string", "less_bytes",
            "greater_bytes", "less_equals_bytes", "greater_equals_bytes", "equals", "not_equals",
        ),
        _smaller,
    ),
    **dict.fromkeys(("add_string", "add_bytes"), _sum),
    "add_list": lambda arguments, result: 1,
    **dict.fromkeys(("matches", "matches_string"), _regex),
    "contains_string": _contains,
}  # fmt: skip
_CONTAINING = {
    "containsIP": _in_range("cidr_contains_ip_string", False),
    "containsCIDR": _in_range("cidr_contains_cidr_string", True),
}


def run_cost(function: str, overload: Overload | None, types: list[Type]) -> int | Cost:
    identity = overload.id if overload is not None else ""
    if overload is not None and overload.cost is not None:
        return overload.cost
    if function == "check":
        return CHECK_COST
    if function in CONSTANT_COST or identity == "cidr_ip":
        return 1
    if function in _CONTAINING:
        return _CONTAINING[function](identity)
    if function in ("_==_", "_!=_") and any(kind.kind in _FIXED_SIZE for kind in types):
        return 1
    if function == "_==_" and any(_counts_as_one(kind) for kind in types):
        return 1
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(identity) or 1


def _counts_as_one(kind: Type) -> bool:
    return (kind.kind == "struct" and kind.name.startswith("kubernetes.")) or kind.name in ("net.IP", "net.CIDR")
