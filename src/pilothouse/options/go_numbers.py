"""Numbers, truth values and durations as Go's standard library reads and prints them.

Flag values follow Go's grammar, not Python's: ``0x1F``, ``010`` (octal) and ``1_000`` are integers, ``T`` is true, and
``1h2m3.5s`` is a duration. Refusals carry kube-apiserver's exact words because they are shown to the user.
"""

from __future__ import annotations

import re

from pilothouse.machinery.go_quote import quote

_INTEGER = re.compile(
    r"([+-]?)(?:0[xX]((?:_?[0-9a-fA-F])+)|0[bB]((?:_?[01])+)|0[oO]?((?:_?[0-7])+)|(0|[1-9](?:_?[0-9])*))"
)
_FLOAT = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf|infinity|nan))")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")
_MAX_INT64 = 2**63 - 1
_MAX_DIGITS = 100


class ValueRefused(ValueError):
    """A flag's text is not a value of its type; the message is what the user sees."""


def _refuse(function: str, text: str, why: str) -> ValueRefused:
    return ValueRefused(f"strconv.{function}: parsing {quote(text)}: {why}")


def parse_int(text: str, bits: int = 64) -> int:
    """A signed integer in any of Go's bases."""
    match = _INTEGER.fullmatch(text)
    if not match:
        raise _refuse("ParseInt", text, "invalid syntax")
    sign, digits = match[1], match[match.lastindex or 5].replace("_", "")
    if len(digits) > _MAX_DIGITS:
        raise _refuse("ParseInt", text, "value out of range")
    base = {2: 16, 3: 2, 4: 8}.get(match.lastindex or 5, 10)
    number = int(digits, base) * (-1 if sign == "-" else 1)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise _refuse("ParseInt", text, "value out of range")
    return number


def parse_decimal(text: str, function: str = "Atoi") -> int:
    """A signed decimal integer, as ``strconv.Atoi`` reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise _refuse(function, text, "invalid syntax")
    if len(digits) > _MAX_DIGITS or abs(int(digits)) > _MAX_INT64:
        raise _refuse(function, text, "value out of range")
    return int(text)


def parse_uint(text: str, bits: int, *, any_base: bool = False) -> int:
    """An unsigned integer that fits into the given number of bits."""
    match = _INTEGER.fullmatch(text) if any_base else None
    if any_base and match and not match[1]:
        number = parse_int(text)
    elif not any_base and text.isascii() and text.isdigit():
        number = int(text) if len(text) <= _MAX_DIGITS else 2**bits
    else:
        raise _refuse("ParseUint", text, "invalid syntax")
    if number >= 2**bits:
        raise _refuse("ParseUint", text, "value out of range")
    return number


def parse_float(text: str) -> float:
    """A floating point number."""
    if not _FLOAT.fullmatch(text):
        raise _refuse("ParseFloat", text, "invalid syntax")
    number = float(text)
    if number in (float("inf"), float("-inf")) and "n" not in text.lower():
        raise _refuse("ParseFloat", text, "value out of range")
    return number


def parse_bool(text: str) -> bool:
    """One of Go's twelve spellings of true and false."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _refuse("ParseBool", text, "invalid syntax")


def parse_duration(text: str) -> float:
    """A Go duration such as ``1h2m3s``, in seconds."""
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0.0
    total = 0
    if not rest:
        raise ValueRefused(f"time: invalid duration {quote(text)}")
    position = 0
    while position < len(rest):
        match = _DURATION_PART.match(rest, position)
        if not match or not (match[1] or match[2]) or len(match[1]) > _MAX_DIGITS:
            raise ValueRefused(f"time: invalid duration {quote(text)}")
        total += _part_nanoseconds(match, text)
        position = match.end()
    if total > _MAX_INT64 + (1 if sign == "-" else 0):
        raise ValueRefused(f"time: invalid duration {quote(text)}")
    return (-total if sign == "-" else total) / 1e9


def _part_nanoseconds(match: re.Match[str], text: str) -> int:
    whole, fraction, unit = match[1], (match[2] or "")[:18], match[3]
    if not unit:
        raise ValueRefused(f"time: missing unit in duration {quote(text)}")
    if unit not in _UNITS:
        raise ValueRefused(f"time: unknown unit {quote(unit)} in duration {quote(text)}")
    scale = _UNITS[unit]
    return int(whole or 0) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)


def format_duration(seconds: float) -> str:
    """The seconds as Go prints a duration: ``1m0s``, ``1h0m0s``, ``500ms``."""
    nanoseconds = round(seconds * 1e9)
    if nanoseconds == 0:
        return "0s"
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    for unit, scale in (("ns", 1), ("µs", 10**3), ("ms", 10**6)):
        if left < scale * 1000:
            return f"{sign}{_decimal(left, scale)}{unit}"
    minutes, rest = divmod(left, 60 * 10**9)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{_decimal(rest, 10**9)}s"
    if minutes:
        text = f"{minutes_left}m{text}"
    return f"{sign}{hours}h{text}" if hours else sign + text


def _decimal(value: int, scale: int) -> str:
    whole, part = divmod(value, scale)
    digits = str(part).zfill(len(str(scale)) - 1).rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
