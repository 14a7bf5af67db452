"""Points in time and durations, read and written as the Go standard library does.

Objects carry times as text. ``canonicalize_time`` and ``canonicalize_micro_time`` give the text that kube-apiserver
would store (UTC, whole seconds or six digits; ``None`` for the zero time, which is encoded as null) and raise
``TimeError`` with Go's words otherwise. A text in canonical form is recognised by one regular expression and returned
as it is. Whoever needs the present takes a ``Clock``; the standard ``time`` module is one.
"""

from __future__ import annotations

import re
import time
from typing import Final, NamedTuple, Protocol

SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE

_DAY_SECONDS: Final = 86_400
_MAX_INT64: Final = 2**63 - 1
_RFC3339: Final = "2006-01-02T15:04:05Z07:00"
_RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"

# Days up to 28 exist in every month; the few later ones take the long way.
_CANONICAL = r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_is_canonical = re.compile(_CANONICAL + "Z").fullmatch
_micro_fraction = re.compile(r"[.,]([+-]?)([0-9]+)").match
_is_canonical_micro = re.compile(_CANONICAL + r"\.[0-9]{6}Z").fullmatch


class TimeError(ValueError):
    """A text that is no time or no duration; its message is Go's."""


class Instant(NamedTuple):
    """A point in time, in seconds since 1970 UTC and nanoseconds on top; instants compare as times do."""

    seconds: int
    nanos: int = 0

    def since(self, earlier: Instant) -> float:
        """Seconds that have passed since an earlier instant."""
        return self.seconds - earlier.seconds + (self.nanos - earlier.nanos) / SECOND


# What Go has for a time that was never set: the first moment of year 1.
ZERO_INSTANT: Final = Instant(-62_135_596_800)
_ZERO_TEXT: Final = "0001-01-01T00:00:00Z"
_ZERO_MICRO_TEXT: Final = "0001-01-01T00:00:00.000000Z"


class Clock(Protocol):
    """Where the present comes from; the ``time`` module fits."""

    def time_ns(self) -> int: ...


_SYSTEM: Final[Clock] = time


_last_second: tuple[int, str] = (0, "1970-01-01T00:00:00Z")
"""The second that was asked for last, and its text: many objects are made in one."""


def now(clock: Clock = _SYSTEM) -> str:
    """The present as objects carry it: ``2024-05-01T12:00:00Z``."""
    global _last_second
    seconds = clock.time_ns() // SECOND
    last, text = _last_second
    if seconds != last:
        text = _format_seconds(seconds) + "Z"
        _last_second = (seconds, text)
    return text


def now_micro(clock: Clock = _SYSTEM) -> str:
    """The present with microseconds: ``2024-05-01T12:00:00.123456Z``."""
    seconds, nanos = divmod(clock.time_ns(), SECOND)
    return f"{_format_seconds(seconds)}.{nanos // 1000:06}Z"


def now_instant(clock: Clock = _SYSTEM) -> Instant:
    """The present for arithmetic."""
    return Instant(*divmod(clock.time_ns(), SECOND))


def canonicalize_time(text: str) -> str | None:
    """The stored form of a ``Time``; None if it is the zero time."""
    if _is_canonical(text) and text != _ZERO_TEXT:
        return text
    instant = parse_time(text)
    return None if instant == ZERO_INSTANT else format_time(instant)


def canonicalize_micro_time(text: str) -> str | None:
    """The stored form of a ``MicroTime``; None if it is the zero time."""
    if _is_canonical_micro(text) and text != _ZERO_MICRO_TEXT:
        return text
    instant = parse_micro_time(text)
    return None if instant == ZERO_INSTANT else format_micro_time(instant)


def parse_time(text: str) -> Instant:
    """Read RFC 3339 with any offset and fraction, as ``time.Parse(time.RFC3339, text)``."""
    return _Parser(text, _RFC3339).run()


def parse_micro_time(text: str) -> Instant:
    """Read RFC 3339 with exactly six digits of fraction."""
    return _Parser(text, _RFC3339_MICRO).run()


def format_time(instant: Instant) -> str:
    """RFC 3339 in UTC; the fraction is cut off."""
    return _format_seconds(instant.seconds) + "Z"


def format_micro_time(instant: Instant) -> str:
    """RFC 3339 in UTC with six digits of fraction."""
    return f"{_format_seconds(instant.seconds)}.{instant.nanos // 1000:06}Z"


def _format_seconds(seconds: int) -> str:
    days, rest = divmod(seconds, _DAY_SECONDS)
    year, month, day = _civil(days)
    sign = "-" if year < 0 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a date of the proleptic Gregorian calendar, any year."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    """The date that is so many days after 1970-01-01."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def _days_in(month: int, year: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _digit(text: str, at: int) -> bool:
    return at < len(text) and "0" <= text[at] <= "9"


class _Parser:
    """One run over a text, element by element of the layout, so that errors name the element that failed."""

    def __init__(self, text: str, layout: str) -> None:
        self.text = text
        self.rest = text
        self.layout = layout
        self.nanos = 0

    def run(self) -> Instant:
        year = self._year()
        self._skip("-")
        month = self._number("01", "month", 1, 12)
        self._skip("-")
        day = self._number("02", "", 0, 99)
        self._skip("T")
        hour = self._number("15", "hour", 0, 23, fixed=False)
        self._skip(":")
        minute = self._number("04", "minute", 0, 59)
        self._skip(":")
        second = self._number("05", "second", 0, 59)
        self._fraction()
        offset = self._zone()
        if self.rest:
            raise self._error(f": extra text: {_quote(self.rest)}")
        if not 1 <= day <= _days_in(month, year):
            raise self._error(": day out of range")
        seconds = _days(year, month, day) * _DAY_SECONDS + hour * 3600 + minute * 60 + second - offset
        return Instant(seconds, self.nanos)

    def _error(self, message: str) -> TimeError:
        return TimeError(f"parsing time {_quote(self.text)}{message}")

    def _unexpected(self, element: str) -> TimeError:
        return self._error(f" as {_quote(self.layout)}: cannot parse {_quote(self.rest)} as {_quote(element)}")

    def _skip(self, prefix: str) -> None:
        if not self.rest.startswith(prefix):
            raise self._unexpected(prefix)
        self.rest = self.rest[1:]

    def _year(self) -> int:
        digits = self.rest[:4]
        if len(digits) < 4 or not all(_digit(digits, at) for at in range(4)):
            raise self._unexpected("2006")
        self.rest = self.rest[4:]
        return int(digits)

    def _number(self, element: str, name: str, least: int, most: int, *, fixed: bool = True) -> int:
        width = 2 if _digit(self.rest, 1) else 1
        if not _digit(self.rest, 0) or (fixed and width == 1):
            raise self._unexpected(element)
        value = int(self.rest[:width])
        if not least <= value <= most:
            raise self._error(f": {name} out of range")
        self.rest = self.rest[width:]
        return value

    def _fraction(self) -> None:
        if self.layout is _RFC3339:
            if self.rest[:1] in (".", ",") and _digit(self.rest, 1):
                end = 2
                while _digit(self.rest, end):
                    end += 1
                self.nanos = int(self.rest[1 : min(end, 10)].ljust(9, "0"))
                self.rest = self.rest[end:]
            return
        match = _micro_fraction(self.rest[:7])
        if match is None or match.end() != 7:
            raise self._unexpected(".000000")
        value = int(match[2])
        if match[1] == "-" and value:
            raise self._error(": fractional second out of range")
        self.nanos = value * 1000
        self.rest = self.rest[7:]

    def _zone(self) -> int:
        if self.rest.startswith("Z"):
            self.rest = self.rest[1:]
            return 0
        zone = self.rest[:6]
        if len(zone) < 6 or zone[3] != ":" or not (_digit(zone, 1) and _digit(zone, 2)):
            raise self._unexpected("Z07:00")
        hours = int(zone[1:3])
        if hours > 24:
            raise self._error(": time zone offset hour out of range")
        if not (_digit(zone, 4) and _digit(zone, 5)):
            raise self._unexpected("Z07:00")
        minutes = int(zone[4:6])
        if minutes > 60:
            raise self._error(": time zone offset minute out of range")
        if zone[0] not in "+-":
            raise self._unexpected("Z07:00")
        self.rest = self.rest[6:]
        offset = (hours * 60 + minutes) * 60
        return -offset if zone[0] == "-" else offset


def _quote(text: str) -> str:
    """Quoting of Go's time package: control and non-ASCII characters as hexadecimal bytes."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    parts = []
    for char in text:
        if char in '"\\':
            parts.append("\\" + char)
        elif " " <= char <= "\x7f":
            parts.append(char)
        else:
            parts.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    return '"' + "".join(parts) + '"'


_UNITS: Final = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 1_000_000, "s": SECOND, "m": MINUTE, "h": HOUR,
}  # fmt: skip
_DURATION_PART = re.compile(r"(?=[0-9.])([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")


_LONGEST_DURATION: Final = 1024
"""More parts than this are no duration but a burden."""


def parse_duration(text: str) -> int:
    """Nanoseconds of a duration like ``1h15m30.5s``, as ``time.ParseDuration`` reads it."""
    if len(text) > _LONGEST_DURATION:
        raise _bad_duration(text)
    rest = text[1:] if text[:1] in ("-", "+") else text
    negative = text.startswith("-")
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest) or not rest:
        match = _DURATION_PART.match(rest, at)
        if match is None:
            raise _bad_duration(text)
        whole, fraction, unit = match.groups()
        digits = whole.lstrip("0") or "0"
        if not (whole or fraction) or len(digits) > 19 or int(digits) > 2**63:
            raise _bad_duration(text)
        if not unit:
            raise TimeError(f"time: missing unit in duration {_quote(text)}")
        if unit not in _UNITS:
            raise TimeError(f"time: unknown unit {_quote(unit)} in duration {_quote(text)}")
        total += int(digits) * _UNITS[unit] + _fraction_of(fraction or "", _UNITS[unit])
        if total > 2**63:
            raise _bad_duration(text)
        at = match.end()
    if not negative and total > _MAX_INT64:
        raise _bad_duration(text)
    return -total if negative else total


def _bad_duration(text: str) -> TimeError:
    return TimeError(f"time: invalid duration {_quote(text)}")


def _fraction_of(digits: str, unit: int) -> int:
    """A fraction of a unit in whole nanoseconds, by way of floats as in Go; digits beyond int64 count for nothing."""
    value, scale = 0, 1.0
    for digit in digits[:19]:
        if value > _MAX_INT64 // 10 or value * 10 + int(digit) > 2**63:
            break
        value, scale = value * 10 + int(digit), scale * 10
    return int(value * (unit / scale)) if value else 0


def format_duration(nanos: int) -> str:
    """A duration as Go prints it: ``1h0m0.5s``, ``1.5ms``, ``0s``."""
    if nanos < 0:
        return "-" + format_duration(-nanos)
    if nanos < SECOND:
        if not nanos:
            return "0s"
        for unit, size in (("ns", 1), ("µs", 1000), ("ms", 1_000_000)):
            if nanos < size * 1000:
                return _decimal(nanos, size) + unit
    seconds = _decimal(nanos % MINUTE, SECOND) + "s"
    if nanos < MINUTE:
        return seconds
    minutes = f"{nanos // MINUTE % 60}m{seconds}"
    return f"{nanos // HOUR}h{minutes}" if nanos >= HOUR else minutes


def _decimal(value: int, size: int) -> str:
    whole, rest = divmod(value, size)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(size)) - 1).rstrip('0')}"


def human_duration(seconds: float) -> str:
    """A duration for people, two or three significant figures: ``5m2s``, ``3h``, ``45d``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // _DAY_SECONDS
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    return _pair(days // 365, "y", days % 365 if days < 365 * 8 else 0, "d")


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
