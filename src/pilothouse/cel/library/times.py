"""Parts of timestamps, in UTC or a given zone, and lengths of durations in a unit."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from pilothouse.cel.conversions import civil
from pilothouse.cel.declarations import Function, Overload
from pilothouse.cel.values import Duration, Timestamp, fail

_BILLION = 1_000_000_000
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_OFFSET_NUMBER = re.compile(r"[+-]?[0-9]{1,9}\Z")


def _day_of_year(seconds: int) -> int:
    year, month, day, *_ = civil(seconds)
    leap = month > 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return _DAYS_BEFORE[month - 1] + day - 1 + leap


_PARTS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "getFullYear": ("year", lambda seconds, nanos: civil(seconds)[0]),
    "getMonth": ("month", lambda seconds, nanos: civil(seconds)[1] - 1),
    "getDayOfYear": ("day_of_year", lambda seconds, nanos: _day_of_year(seconds)),
    "getDayOfMonth": ("day_of_month", lambda seconds, nanos: civil(seconds)[2] - 1),
    "getDate": ("day_of_month_1_based", lambda seconds, nanos: civil(seconds)[2]),
    "getDayOfWeek": ("day_of_week", lambda seconds, nanos: (seconds // 86400 + 4) % 7),
    "getHours": ("hours", lambda seconds, nanos: seconds // 3600 % 24),
    "getMinutes": ("minutes", lambda seconds, nanos: seconds // 60 % 60),
    "getSeconds": ("seconds", lambda seconds, nanos: seconds % 60),
    "getMilliseconds": ("milliseconds", lambda seconds, nanos: nanos // 1_000_000),
}
_UNITS = {
    "getHours": 3600 * _BILLION,
    "getMinutes": 60 * _BILLION,
    "getSeconds": _BILLION,
    "getMilliseconds": 1_000_000,
}


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _offset(zone: str, seconds: int) -> int:
    """Seconds east of UTC at a moment."""
    hours, colon, minutes = zone.partition(":")
    if not colon:
        if zone in ("", "UTC"):
            return 0
        info = _zone(zone)
        if info is None:
            fail(f"unknown time zone {zone}")
        moment = datetime.fromtimestamp(min(max(seconds, -62135596800 + 86400), 253402300799 - 86400), UTC)
        shift = info.utcoffset(moment.astimezone(info))
        return int(shift.total_seconds()) if shift else 0
    for part in (hours, minutes):
        if not _OFFSET_NUMBER.match(part):
            fail(f'strconv.Atoi: parsing "{part}": invalid syntax')
    if not 0 <= int(minutes) <= 59:
        fail(f"timezone offset minutes out of range [0, 59]: {zone}")
    sign = -1 if zone.startswith("-") else 1
    return 60 * (int(hours) * 60 + sign * int(minutes))


def _part(read: Callable[[int, int], int]) -> Callable[..., int]:
    def apply(value: Timestamp, zone: str = "UTC") -> int:
        seconds, nanos = divmod(value.nanoseconds, _BILLION)
        return read(seconds + _offset(zone, seconds), nanos)

    return apply


def _length(unit: int) -> Callable[[Duration], int]:
    def apply(value: Duration) -> int:
        whole = abs(value.nanoseconds) // unit
        return -whole if value.nanoseconds < 0 else whole

    return apply


def _function(name: str) -> Function:
    word, read = _PARTS[name]
    implementation: Any = _part(read)
    overloads = [
        Overload(f"timestamp_to_{word}", "timestamp.() -> int", implementation),
        Overload(f"timestamp_to_{word}_with_tz", "timestamp.(string) -> int", implementation),
    ]
    if name in _UNITS:
        overloads.append(Overload(f"duration_to_{word}", "duration.() -> int", _length(_UNITS[name])))
    return Function(name, overloads)


FUNCTIONS = tuple(_function(name) for name in _PARTS)
