"""Text as Go prints it, where clients see it in messages: ``%q`` strings and ``%v`` values."""

from __future__ import annotations

import re
from typing import Any

_PLAIN = re.compile(r'[ !#-\[\]-~]*')
_SHORT = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}


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
    if isinstance(value, float):
        return format_float(value)
    return str(value)


def format_float(value: float) -> str:
    """A float as ``%v`` shows it: shortest form, exponent from 1e21 on."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    sign, digits = exponent[0] if exponent[0] in "+-" else "+", exponent.lstrip("+-")
    return f"{mantissa}e{sign}{digits.zfill(2)}"
