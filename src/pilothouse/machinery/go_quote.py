"""Text as Go prints it, where clients see it in messages: ``%q`` strings and ``%v`` values."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

_PLAIN: Final = re.compile(r"[ !#-\[\]-~]*")
_SHORT: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_EXPONENT_FROM: Final = 6
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1


def quote(text: str) -> str:
    """The text as ``%q`` shows it: in double quotes, unprintable characters escaped."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join(_escape(c) for c in text) + '"'


def _escape(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no character, as ``surrogateescape`` keeps it
        code -= 0xDC00
        return f"\\x{code:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show(value: Any) -> str:
    """The value as ``%v`` shows decoded JSON: ``map[a:1 b:[x y]]``, ``<nil>``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{show(value[k])}" for k in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(show(v) for v in value) + "]"
    return show_number(value) if isinstance(value, int | float) else str(value)


def show_number(value: float) -> str:
    """A number as ``%v`` shows decoded JSON: beyond 64 bits with a sign it is a float there."""
    if isinstance(value, float) or not _LEAST <= value <= _MOST:
        return format_float(float(value))
    return str(value)


def format_float(value: float) -> str:
    """A float as ``%v`` shows it: the shortest digits that mean it, with an exponent below 1e-4 and from 1e+06 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value))
    exponent = number.adjusted()
    if value == 0 or -4 <= exponent < _EXPONENT_FROM:
        return f"{value:.0f}" if value.is_integer() else f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{'-' if value < 0 else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
