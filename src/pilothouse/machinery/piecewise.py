"""Looks for patterns in long texts, sorts and checks long lists, without one long call.

A search is one call into C that keeps the interpreter's lock: through 3 MB it takes up to 60 ms, in which no other
thread can do anything; sorting 100,000 texts takes 40. In pieces, they get their turn every millisecond or so.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

Item = TypeVar("Item")

_PIECE: Final = 32 * 1024
_FEW: Final = 1_000
"""So many texts are sorted in less than a millisecond."""


def occurs(pattern: re.Pattern[bytes], data: bytes, reach: int) -> bool:
    """Whether a pattern is found that can be told by ``reach`` bytes: no place where it begins needs more of them."""
    if len(data) <= _PIECE:
        return pattern.search(data) is not None
    return any(pattern.search(data, at, at + _PIECE + reach) for at in range(0, len(data), _PIECE))


def in_order(texts: list[str]) -> list[str]:
    """The texts sorted. Takes twice as long as ``sorted``, of which it does one part after the other."""
    if len(texts) <= _FEW:
        return sorted(texts)
    pivots = sorted(texts[:: len(texts) // (_FEW // 4)])
    parts: list[list[str]] = [[] for _ in range(len(pivots) + 1)]
    for text in texts:
        parts[bisect_right(pivots, text)].append(text)
    return [text for part in parts for text in sorted(part)]


def in_order_by(key: Callable[[Item], str], items: Sequence[Item]) -> list[Item]:
    """The same for items by their texts; those of one text stay in their order."""
    if len(items) <= _FEW:
        return sorted(items, key=key)
    pivots = sorted(map(key, items[:: len(items) // (_FEW // 4)]))
    parts: list[list[Item]] = [[] for _ in range(len(pivots) + 1)]
    for item in items:
        parts[bisect_right(pivots, key(item))].append(item)
    return [item for part in parts for item in sorted(part, key=key)]


def all_of(test: Callable[[str], object], texts: list[str]) -> bool:
    """Whether each of the texts passes."""
    return all(all(map(test, texts[at : at + _FEW])) for at in range(0, len(texts), _FEW))
