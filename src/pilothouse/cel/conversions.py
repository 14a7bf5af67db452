"""Conversions between types: `int()`, `string()`, `timestamp()` and their kin."""

from __future__ import annotations

import math
import re
from typing import Any

from pilothouse.cel.arithmetic import checked_unsigned
from pilothouse.cel.types import Type
from pilothouse.cel.values import (
    MAX_INT,
    Duration,
    EvaluationError,
    Timestamp,
    UInt,
    fail,
    type_name,
    type_of_value,
)
from pilothouse.machinery.times import TimeError, parse_duration, parse_time

_INTEGER = re.compile(r"[+-]?[0-9]{1,40}\Z")
_UNSIGNED = re.compile(r"[0-9]{1,40}\Z")
_FLOAT = re.compile(
    r"[+-]?(?:(?:[0-9]++(?:_[0-9]++)*+\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+|inf(?:inity)?|nan)\Z",
    re.IGNORECASE,
)
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_ZONE = re.compile(r"([+-])([0-9]{2}):([0-9]{2})\Z")
_BILLION = 1_000_000_000


def _refuse(value: Any, target: str) -> Any:
    fail(f"type conversion error from '{type_name(value)}' to '{target}'")


def to_type(value: Any) -> Type:
    return type_of_value(value)


def to_bool(value: Any) -> Any:
    if value.__class__ is bool:
        return value
    if value.__class__ is str and value in _TRUE:
        return True
    if value.__class__ is str and value in _FALSE:
        return False
    return _refuse(value, "bool")


def to_bytes(value: Any) -> Any:
    if value.__class__ is str:
        return value.encode("utf-8", "surrogatepass")
    return value if value.__class__ is bytes else _refuse(value, "bytes")


def to_int(value: Any) -> Any:
    kind = value.__class__
    if kind is int:
        return value
    if kind is UInt:
        return int(value) if value <= MAX_INT else fail("integer overflow")
    if kind is float:
        if math.isnan(value) or math.isinf(value) or value <= -9223372036854775808.0 or value >= 9223372036854775808.0:
            fail("integer overflow")
        return int(value)
    if kind is str and _INTEGER.match(value):
        number = int(value)
        if -(1 << 63) <= number < 1 << 63:
            return number
    if kind is Timestamp:
        return value.nanoseconds // _BILLION
    if kind is Duration:
        return value.nanoseconds
    return _refuse(value, "int")


def to_uint(value: Any) -> Any:
    kind = value.__class__
    if kind is UInt:
        return value
    if kind is int:
        return checked_unsigned(value)
    if kind is float:
        if math.isnan(value) or value < 0 or value >= 18446744073709551616.0:
            fail("unsigned integer overflow")
        return UInt(int(value))
    if kind is str and _UNSIGNED.match(value) and int(value) < 1 << 64:
        return UInt(int(value))
    return _refuse(value, "uint")


def to_double(value: Any) -> Any:
    kind = value.__class__
    if kind is float:
        return value
    if kind is int or kind is UInt:
        return float(value)
    if kind is str and len(value) < 1000 and _FLOAT.match(value):
        number = float(value)
        if not math.isinf(number) or "inf" in value.lower():
            return number
    return _refuse(value, "double")


def to_string(value: Any) -> Any:
    kind = value.__class__
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is UInt:
        return str(int(value))
    if kind is float:
        return format_double(value)
    if kind is bytes:
        try:
            return value.decode()
        except UnicodeDecodeError:
            fail("invalid UTF-8 in bytes, cannot convert to string")
    if kind is Timestamp:
        return format_timestamp(value)
    if kind is Duration:
        return format_duration(value)
    text = getattr(value, "cel_string", None)
    return text() if text is not None else _refuse(value, "string")


def to_duration(value: Any) -> Any:
    if value.__class__ is str:
        try:
            return Duration(parse_duration(value))
        except TimeError:
            pass
    return value if value.__class__ is Duration else _refuse(value, "google.protobuf.Duration")


def to_timestamp(value: Any) -> Any:
    kind = value.__class__
    if kind is Timestamp:
        return value
    if kind is int:
        if not -62135596800 <= value <= 253402300799:
            fail("timestamp overflow")
        return Timestamp(value * _BILLION)
    if kind is str:
        try:
            return parse_timestamp(value)
        except TimeError:
            pass
    return _refuse(value, "google.protobuf.Timestamp")


def parse_timestamp(text: str) -> Timestamp:
    """Read RFC 3339; TimeError if it is something else, EvaluationError if it is out of range."""
    instant = parse_time(text)
    if not -62135596800 <= instant.seconds <= 253402300799:
        raise EvaluationError("timestamp overflow")
    zone = _ZONE.search(text)
    offset = 0
    if zone is not None:
        offset = (int(zone.group(2)) * 60 + int(zone.group(3))) * (-60 if zone.group(1) == "-" else 60)
    return Timestamp(instant.seconds * _BILLION + instant.nanos, offset)


def format_double(value: float) -> str:
    """Print a float as Go's %g does: the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    digits, exponent = _digits(abs(value))
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'+' if exponent >= 0 else '-'}{abs(exponent):02d}"
    return sign + fixed(digits, exponent)


def _digits(value: float) -> tuple[str, int]:
    """The shortest decimal digits of a value and the power of ten of the first."""
    if value == 0:
        return "0", 0
    mantissa, _, power = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(power or 0) + len(whole) - 1
    digits = (whole + fraction).lstrip("0")
    exponent -= len(whole + fraction) - len((whole + fraction).lstrip("0"))
    return digits.rstrip("0") or "0", exponent


def fixed(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


def shortest_fixed(value: float) -> str:
    """Print a float without exponent, as Go's strconv does for 'f' and -1."""
    sign = "-" if value < 0 else ""
    digits, exponent = _digits(abs(value))
    return sign + fixed(digits, exponent)


def format_duration(value: Duration) -> str:
    whole, rest = divmod(abs(value.nanoseconds), _BILLION)
    seconds = whole + rest / 1e9
    return shortest_fixed(-seconds if value.nanoseconds < 0 else seconds) + "s"


def format_timestamp(value: Timestamp) -> str:
    seconds, nanos = divmod(value.nanoseconds, _BILLION)
    year, month, day, hour, minute, second = civil(seconds + value.offset)
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    minutes = abs(value.offset) // 60
    zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if value.offset else "Z"
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{fraction}{zone}"


def civil(seconds: int) -> tuple[int, int, int, int, int, int]:
    """Split seconds since 1970 into year, month, day, hour, minute and second of UTC."""
    days, rest = divmod(seconds, 86400)
    shifted = days + 719468
    era, of_era = divmod(shifted, 146097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day, rest // 3600, rest // 60 % 60, rest % 60
