"""How soon to look again at what has many parts: each look is at all of them, so many changes share one.

A look at a thousand pods takes some milliseconds; five of them a second are a few hundredths of a processor.
"""

from __future__ import annotations

from typing import Final

_MANY: Final = 50
_SECONDS_FOR_EACH: Final = 0.0002


def pause_for(parts: int) -> float:
    """Seconds to wait for more changes after one; none where there are few parts."""
    return parts * _SECONDS_FOR_EACH if parts >= _MANY else 0.0
