"""Tolerations beside each other: which ones cover others, and two lists of them as one.

A pod may have tens of thousands. So those that may cover others are found by what they say, not gone through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

Toleration = dict[str, Any]

_ANYTHING: Final = b""
_Saying = tuple[bytes, bytes, bytes]
"""A key, an effect and a value, as JSON; nothing where any will do."""


def merge_tolerations(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """Both lists without what is redundant."""
    everything = [*first, *second]
    later = Coverage()
    is_covered_later: list[bool] = []
    for each in reversed(everything):
        is_covered_later.append(later.has_other_that_covers(each))
        later.add(each)
    is_covered_later.reverse()
    merged, kept = [], Coverage()
    for each, is_redundant in zip(everything, is_covered_later, strict=True):
        if not is_redundant and not kept.covers(each):
            merged.append(each)
            kept.add(each)
    return merged


def within(tolerations: Sequence[Toleration], allowed: Sequence[Toleration]) -> bool:
    """Whether each toleration is covered by an allowed one; an empty list allows everything."""
    if not allowed or not tolerations:
        return True
    wide = Coverage(allowed)
    return all(map(wide.covers, tolerations))


class Coverage:
    """Some tolerations, and whether one of them tolerates whatever another does.

    For each thing that can be said, the two that hold longest are known: the longest may be the very one that is asked
    about.
    """

    def __init__(self, tolerations: Iterable[Toleration] = ()) -> None:
        self._exact: set[bytes] = set()
        self._longest: dict[_Saying, list[tuple[float, bytes]]] = {}
        for each in tolerations:
            self.add(each)

    def add(self, wide: Toleration) -> None:
        """One more of them."""
        exact = _written(wide)
        self._exact.add(exact)
        operator, effect = wide.get("operator", ""), wide.get("effect", "")
        if operator not in ("Exists", "Equal", ""):
            return
        exists = operator == "Exists"
        key = _ANYTHING if exists and not wide.get("key") else _written(wide.get("key", ""))
        value = _ANYTHING if exists else _written(wide.get("value", ""))
        seconds = wide.get("tolerationSeconds") if effect == "NoExecute" else None
        held = (math.inf if seconds is None else seconds, exact)
        longest = self._longest.setdefault((key, _written(effect) if effect else _ANYTHING, value), [])
        if held not in longest:
            longest.append(held)
            longest.sort(reverse=True)
            del longest[2:]

    def covers(self, narrow: Toleration) -> bool:
        """Whether one of them covers it; its equal does."""
        exact = _written(narrow)
        return exact in self._exact or self._has(narrow, b"")

    def has_other_that_covers(self, narrow: Toleration) -> bool:
        """Whether one of them covers it that is not its equal."""
        return self._has(narrow, _written(narrow))

    def _has(self, narrow: Toleration, but: bytes) -> bool:
        seconds = narrow.get("tolerationSeconds")
        needed = math.inf if seconds is None else seconds
        values = [_ANYTHING]
        if narrow.get("operator") == "Equal":
            values.append(_written(narrow.get("value", "")))
        for key in (_written(narrow.get("key", "")), _ANYTHING):
            for effect in (_written(narrow.get("effect", "")), _ANYTHING):
                for value in values:
                    for held, exact in self._longest.get((key, effect, value), ()):
                        if exact != but and held >= needed:
                            return True
        return False


def _written(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
