"""Whole numbers written as text, refused in Go's words when they are none."""

from __future__ import annotations

from pilothouse.machinery.go_quote import quote


class IntegerRangeError(ValueError):
    """A number, but one of more than 64 bits."""


def parse_integer(text: str, function: str = "ParseInt") -> int:
    """The number, of 64 bits. Raises ``ValueError`` with the message of ``strconv.ParseInt`` or ``strconv.Atoi``."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"strconv.{function}: parsing {quote(text)}: invalid syntax")
    kept = digits.lstrip("0")
    number = int(kept or "0") if len(kept) <= 19 else 1 << 64
    number = -number if text[0] == "-" else number
    if not -(1 << 63) <= number < 1 << 63:
        raise IntegerRangeError(f"strconv.{function}: parsing {quote(text)}: value out of range")
    return number
