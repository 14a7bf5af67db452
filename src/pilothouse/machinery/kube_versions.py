"""The order of API versions: v2, v1, v1beta2, v1beta1, v1alpha1, then all other names by the alphabet."""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Final

_FORM: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {None: 2, "beta": 1, "alpha": 0}


def _parts(version: str) -> tuple[int, int, int] | None:
    found = _FORM.fullmatch(version)
    if found is None:
        return None
    return _STAGES[found[2]], int(found[1]), int(found[3] or 0)


def compare(first: str, second: str) -> int:
    """Positive when the first is preferred, negative when the second is, 0 when they are the same."""
    if first == second:
        return 0
    one, two = _parts(first), _parts(second)
    if one is None or two is None:
        if one is None and two is None:
            return 1 if first < second else -1
        return -1 if one is None else 1
    return 1 if one > two else -1


def _order(first: str, second: str) -> int:
    return -compare(first, second)


preferred_first = cmp_to_key(_order)
"""A sort key."""
