"""Looks for patterns in long texts without one long call.

A search is one call into C that keeps the interpreter's lock: through 3 MB it takes up to 60 ms, in which no other
thread can do anything. In pieces, they get their turn every millisecond or so.
"""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = 32 * 1024


def occurs(pattern: re.Pattern[bytes], data: bytes, reach: int) -> bool:
    """Whether a pattern is found that can be told by ``reach`` bytes: no place where it begins needs more of them."""
    if len(data) <= _PIECE:
        return pattern.search(data) is not None
    return any(pattern.search(data, at, at + _PIECE + reach) for at in range(0, len(data), _PIECE))
