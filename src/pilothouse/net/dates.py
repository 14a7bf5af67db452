"""Dates as HTTP writes them: ``Sun, 06 Nov 1994 08:49:37 GMT``.

The standard library has this in ``email``, whose modules are most of half a megabyte in every server.
"""

from __future__ import annotations

import time
from typing import Final

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def http_date(seconds: float) -> bytes:
    """A point in time, in seconds since 1970; fractions of a second are left out."""
    year, month, day, hour, minute, second, weekday, _, _ = time.gmtime(seconds)
    text = f"{_DAYS[weekday]}, {day:02d} {_MONTHS[month - 1]} {year:04d} {hour:02d}:{minute:02d}:{second:02d} GMT"
    return text.encode()
