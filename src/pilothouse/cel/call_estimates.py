"""What calls of each function may cost, and how big their results are, as far as sizes of arguments tell."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from pilothouse.cel.nodes import Literal, Node
from pilothouse.cel.ranges import FIXED_ONE, MAX, REGEX, TRAVERSAL, UNKNOWN, Range, add, fixed, scale, times
from pilothouse.cel.run_costs import CHECK_COST, CONSTANT_COST
from pilothouse.cel.types import Type

Path = tuple[str, ...]
SizeOfPath = Callable[[Path], Range | None]


class Operand(NamedTuple):
    """An argument of a call as the estimator of its function sees it."""

    path: Path
    type: Type
    node: Node | None
    size: Range | None


class CallEstimate(NamedTuple):
    """What a call costs apart from its arguments, and how big its result is, if that is known."""

    cost: Range
    size: Range | None = None


Estimator = Callable[[str, Operand | None, list[Operand], SizeOfPath], CallEstimate | None]
_MAX_FORMAT = 64
_MAX_FORMAT_REGEX = 128
_ADDRESS: Range = (4, 16)


def estimate_call(
    function: str, overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
) -> CallEstimate:
    by_overload = _EXTENSIONS.get(overload) or (_sort if function in ("sort", "@sortByAssociatedKeys") else None)
    if by_overload is not None:
        found = by_overload(overload, target, operands, sizes)
        if found is not None:
            return found
    by_function = _FUNCTIONS.get(function)
    if by_function is not None:
        found = by_function(overload, target, operands, sizes)
        if found is not None:
            return found
    elif function in CONSTANT_COST:
        return CallEstimate(FIXED_ONE)
    standard = _STANDARD.get(overload)
    if standard is not None:
        found = standard(overload, target, operands, sizes)
        if found is not None:
            return found
    return CallEstimate(FIXED_ONE)


def _size(operand: Operand, sizes: SizeOfPath) -> Range:
    if operand.size is not None:
        return operand.size
    return (sizes(operand.path) if operand.path else None) or UNKNOWN


def _known(operand: Operand) -> Range:
    return operand.size if operand.size is not None else UNKNOWN


def _element(operand: Operand) -> Operand | None:
    if not operand.type.parameters:
        return None
    path = (*operand.path, "@items") if operand.path else ()
    return Operand(path, operand.type.parameters[0], None, None)


def _literal_number(operand: Operand, otherwise: int) -> int:
    node = operand.node
    if not isinstance(node, Literal) or node.value.__class__ is not int:
        return otherwise
    return max(int(node.value), 0)


def _check(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    return CallEstimate(fixed(CHECK_COST))


def _selector(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if len(operands) != 1:
        return None
    size = _size(operands[0], sizes)
    requirements = scale(scale(size, 0.5), 50.0)
    return CallEstimate(add(fixed(10), add(scale(size, TRAVERSAL), requirements)))


def _walk(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    """Functions that look at every element of a list, or search a string."""
    if target is None:
        return None
    element = _element(target)
    size = _size(target, sizes)
    if element is None:
        factor = fixed(1) if overload == "list_includes_dyn_dyn" else None
        return CallEstimate(times(size, factor) if factor else scale(size, TRAVERSAL))
    cost = FIXED_ONE
    if element.type.kind in ("string", "bytes"):
        cost = add(cost, scale(_size(element, sizes), TRAVERSAL))
    return CallEstimate(times(size, cost))


def _argument(factor: float, sized: bool = False) -> Estimator:
    def estimate(
        overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
    ) -> CallEstimate | None:
        if not operands or (sized and len(operands) != 1):
            return None
        size = _size(operands[0], sizes)
        return CallEstimate(scale(size, factor), size if sized else None)

    return estimate


def _transform(
    overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
) -> CallEstimate | None:
    if target is None:
        return None
    size = _size(target, sizes)
    return CallEstimate(scale(size, TRAVERSAL), size)


def _replace(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None or len(operands) < 2:
        return None
    size, old, new = _size(target, sizes), _size(operands[0], sizes), _size(operands[1], sizes)
    most, kept_most = 0, 0
    if old[0] == 0:
        most, kept_most = min(size[1] + 1, MAX), size[1]
    elif new[1] <= old[0]:
        kept_most = size[1]
    else:
        most = math.ceil(float(size[1]) / float(old[0]))
    least, kept_least = 0, 0
    if old[1] == 0:
        least, kept_least = min(size[0] + 1, MAX), size[0]
    elif old[1] <= new[0]:
        kept_least = size[0]
    else:
        least = math.ceil(float(size[0]) / float(old[1]))
    result = add(times((least, min(most, MAX)), new), (kept_least, kept_most))
    return CallEstimate(scale(size, 2 * TRAVERSAL), result)


def _split(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None:
        return None
    size = _size(target, sizes)
    most = size[1]
    if len(operands) > 1:
        node = operands[1].node
        if isinstance(node, Literal) and node.value.__class__ is int:
            most = int(node.value) & MAX
    return CallEstimate(scale(size, 2 * TRAVERSAL), (0, most))


def _join(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None:
        return None
    count = _size(target, sizes)
    element = _element(target)
    size = times(count, _size(element, sizes)) if element is not None else (0, 0)
    if operands:
        separators = (max(count[0] - 1, 0), max(count[1] - 1, 0))
        size = add(size, times(_size(operands[0], sizes), separators))
    return CallEstimate(scale(size, TRAVERSAL), size)


def _find(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None or not operands:
        return None
    size = _size(target, sizes)
    text = scale(add(size, FIXED_ONE), TRAVERSAL)
    return CallEstimate(times(text, scale(_size(operands[0], sizes), REGEX)), (0, size[1]))


def _ip(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if overload == "cidr_ip":
        return CallEstimate(FIXED_ONE)
    return _argument(TRAVERSAL)(overload, target, operands, sizes)


def _contains_ip(
    overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
) -> CallEstimate | None:
    if not operands:
        return None
    cost = scale(add(_ADDRESS, _ADDRESS), TRAVERSAL)
    if overload == "cidr_contains_ip_string":
        cost = add(cost, scale(_size(operands[0], sizes), TRAVERSAL))
    return CallEstimate(cost)


def _contains_cidr(
    overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
) -> CallEstimate | None:
    if not operands:
        return None
    cost = add(scale(add(_ADDRESS, _ADDRESS), TRAVERSAL), add(scale(_ADDRESS, TRAVERSAL), FIXED_ONE))
    if overload == "cidr_contains_cidr_string":
        cost = add(cost, scale(_size(operands[0], sizes), TRAVERSAL))
    return CallEstimate(cost)


def _validate(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if not operands:
        return None
    return CallEstimate(scale(scale(_size(operands[0], sizes), TRAVERSAL), _MAX_FORMAT_REGEX * REGEX))


_CHEAP_TYPES = frozenset(
    {
        "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.authorization.Authorizer",
        "kubernetes.authorization.PathCheck", "kubernetes.authorization.GroupCheck",
        "kubernetes.authorization.ResourceCheck", "kubernetes.authorization.Decision", "net.IP", "net.CIDR",
    }
)  # fmt: skip


def _equal(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if len(operands) != 2 or operands[0].type != operands[1].type:
        return None
    name = operands[0].type.name
    if name in _CHEAP_TYPES:
        return CallEstimate(FIXED_ONE)
    if name == "kubernetes.NamedFormat":
        return CallEstimate(scale((1, _MAX_FORMAT), TRAVERSAL))
    if name == "kubernetes.URL":
        size = operands[1].size
        return CallEstimate(scale((1, size[1] if size is not None else 1), TRAVERSAL))
    return None


_FUNCTIONS: dict[str, Estimator] = {
    "check": _check,
    "fieldSelector": _selector,
    "labelSelector": _selector,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _walk),
    **dict.fromkeys(("url", "jsonpatch.escapeKey"), _argument(TRAVERSAL, True)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transform),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _argument(TRAVERSAL)),
    "ip": _ip,
    "ip.isCanonical": _argument(2 * TRAVERSAL),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equal,
}


def _format(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    return CallEstimate(scale(_known(target), TRAVERSAL)) if target is not None else None


def _to_bytes(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    size = _known(operands[0])
    return CallEstimate(scale(size, TRAVERSAL), (size[0], size[1] * 4 & MAX))


def _from_bytes(
    overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
) -> CallEstimate | None:
    size = _known(operands[0])
    return CallEstimate(scale(size, TRAVERSAL), (size[0] // 4, size[1]))


def _quote(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    size = _known(operands[0])
    return CallEstimate(scale(size, TRAVERSAL), (size[0] + 2 & MAX, size[1] * 2 + 2 & MAX))


def _affix(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    return CallEstimate(scale(_known(operands[0]), TRAVERSAL)) if len(operands) == 1 else None


def _in_list(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    return CallEstimate(scale(_known(operands[1]), 1.0)) if len(operands) == 2 else None


def _matches(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    text, pattern = (target, operands[0]) if target is not None else (operands[0], operands[1])
    cost = times(scale(add(_known(text), FIXED_ONE), TRAVERSAL), scale(_known(pattern), REGEX))
    return CallEstimate(cost)


def _contains(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None:
        return None
    return CallEstimate(times(scale(_known(target), TRAVERSAL), scale(_known(operands[0]), TRAVERSAL)))


def _concatenate(
    overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
) -> CallEstimate | None:
    size = add(_known(operands[0]), _known(operands[1]))
    return CallEstimate(FIXED_ONE if overload == "add_list" else scale(size, TRAVERSAL), size)


def _compare(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    most = min(_known(operands[0])[1], _known(operands[1])[1])
    return CallEstimate(scale((1 if most > 0 else 0, most), TRAVERSAL))


_STANDARD: dict[str, Estimator] = {
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _from_bytes,
    "strings_quote": _quote,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches": _matches,
    "matches_string": _matches,
    "contains_string": _contains,
    **dict.fromkeys(("add_string", "add_bytes", "add_list"), _concatenate),
    **dict.fromkeys(
        (
            "less_string", "greater_string", "less_equals_string", "greater_equals_string", "less_bytes",
            "greater_bytes", "less_equals_bytes", "greater_equals_bytes", "equals", "not_equals",
        ),
        _compare,
    ),
}  # fmt: skip


def _allocating(factor: float, size: Range) -> CallEstimate:
    return CallEstimate(add(scale(size, factor), fixed(11)), size)


def _slice(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None or len(operands) != 2:
        return None
    start = _literal_number(operands[0], 0)
    end = _literal_number(operands[1], _size(target, sizes)[1])
    return _allocating(1.0, fixed(end - start & MAX))


def _flatten(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None:
        return None
    depth = _literal_number(operands[0], MAX) if operands else 1
    return _allocating(float(depth), _size(target, sizes))


def _range(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    return _allocating(1.0, fixed(_literal_number(operands[0], MAX)))


def _reverse(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    return _allocating(1.0, _size(target, sizes)) if target is not None else None


def _distinct(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    if target is None:
        return None
    size = _size(target, sizes)
    return _allocating(2.0, times(size, size))


def _sort(overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath) -> CallEstimate | None:
    keys = operands[0] if operands else target
    if keys is None:
        return None
    size = _size(keys, sizes)
    textual = overload.startswith(("list_string_", "list_bytes_"))
    return _allocating(2.0 + TRAVERSAL if textual else 2.0, times(size, size))


def _sets(factor: float) -> Estimator:
    def estimate(
        overload: str, target: Operand | None, operands: list[Operand], sizes: SizeOfPath
    ) -> CallEstimate | None:
        pairs = times(_size(operands[0], sizes), _size(operands[1], sizes))
        return CallEstimate(add(scale(pairs, factor), FIXED_ONE))

    return estimate


_EXTENSIONS: dict[str, Estimator] = {
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    "list_sets_contains_list": _sets(1.0),
    "list_sets_intersects_list": _sets(1.0),
    "list_sets_equivalent_list": _sets(2.0),
}
