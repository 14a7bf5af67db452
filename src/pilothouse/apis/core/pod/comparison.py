"""Whether two specs mean the same: equal amounts may be written differently, and empty means missing."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.core.resource_names import amount

_AMOUNT_MAPS: Final = frozenset({"limits", "requests", "overhead"})
_AMOUNTS: Final = frozenset({"sizeLimit", "divisor"})


def same(left: Any, right: Any, field: str = "") -> bool:
    """Compare two decoded values as kube-apiserver's semantic equality does."""
    if left == right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        if field in _AMOUNT_MAPS:
            return left.keys() == right.keys() and all(_same_amount(left[name], right[name]) for name in left)
        return all(same(left.get(name), right.get(name), name) for name in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if field in _AMOUNTS and isinstance(left, str) and isinstance(right, str):
        return _same_amount(left, right)
    return left in (None, []) and right in (None, [])


def _same_amount(left: str, right: str) -> bool:
    return left == right or amount(left).compare(amount(right)) == 0
