"""`'%s and %d'.format([a, b])`: clauses, how values print in them, and what each clause refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from pilothouse.cel.conversions import format_duration, format_timestamp, to_double, to_string
from pilothouse.cel.types import Type
from pilothouse.cel.values import CostLimitExceeded, Duration, Timestamp, UInt, fail, from_map_key, type_name
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.workers import PATIENCE

MAX_PRECISION = 1000
MAX_LENGTH = 20_000_000
"""What kube-apiserver counts is the length of the template, and its arguments may be one long text a thousand times."""
_VALUE_LENGTH = 100
"""A value in a list counts for so much at least: showing it takes as long as copying that."""
CLAUSES = {
    "s": (
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
        " timestamps, was given %s"
    ),
    "d": "decimal clause can only be used on integers, was given %s",
    "f": "fixed-point clause can only be used on doubles, was given %s",
    "e": "scientific clause can only be used on doubles, was given %s",
    "b": "only integers and bools can be formatted as binary, was given %s",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given %s",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given %s",
    "o": "octal clause can only be used on integers, was given %s",
}
_PERCENT = re.compile("%")
_PRECISION = re.compile(r"\.([0-9]*)")
_SPECIAL_NUMBERS = ("NaN", "Infinity", "-Infinity")
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
Clause = tuple[str, int]


class FormatError(Exception):
    """The format string itself is wrong."""


def read_clauses(template: str, count: int | None) -> list[str | Clause]:
    """Cut a template into texts and clauses, each a letter with its precision (-1: none given).

    Errors show in the order in which formatting would meet them; `count` is how many arguments there are.
    """
    pieces: list[str | Clause] = []
    at, taken = 0, 0
    for found in _PERCENT.finditer(template):
        start = found.start()
        if start < at:
            continue
        pieces.append(template[at:start])
        if template[start + 1 : start + 2] == "%":
            pieces.append("%")
            at = start + 2
            continue
        if start + 1 >= len(template):
            raise FormatError("unexpected end of string")
        if count is not None and taken >= count:
            raise FormatError(f"index {taken} out of range")
        clause, at = _read_clause(template, start + 1)
        pieces.append(clause)
        taken += 1
    pieces.append(template[at:])
    return pieces


def _read_clause(template: str, at: int) -> tuple[Clause, int]:
    precision = -1
    match = _PRECISION.match(template, at)
    if match is not None:
        prefix = "could not parse formatting clause: error while parsing precision: "
        at = match.end()
        if at >= len(template):
            raise FormatError(prefix + "could not find end of precision specifier")
        digits = match.group(1)
        if not digits:
            raise FormatError(
                prefix + 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            )
        if len(digits) > 9 or int(digits) > MAX_PRECISION:
            raise FormatError(f"{prefix}precision {digits} exceeds maximum allowed precision {MAX_PRECISION}")
        precision = int(digits)
    letter = template[at]
    if letter not in CLAUSES:
        raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    return (letter, precision), at + 1


def format_string(template: str, arguments: list[Any]) -> str:
    try:
        pieces = read_clauses(template, len(arguments))
    except FormatError as error:
        fail(str(error))
    PATIENCE.spend((MAX_LENGTH - _room_beside(arguments, MAX_LENGTH)) // 50)
    values = iter(arguments)
    built: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            built.append(piece)
            continue
        letter, precision = piece
        value = next(values)
        text = _FORMATTERS[letter](value, 6 if precision < 0 else precision)
        if text is None:
            fail("error during formatting: " + CLAUSES[letter] % type_name(value))
        built.append(text)
    return "".join(built)


def _room_beside(value: Any, room: int) -> int:
    """What is left of the room for a text when a value is shown in it. Raises ``CostLimitExceeded``."""
    room -= len(value) if isinstance(value, str | bytes) else _VALUE_LENGTH
    if room < 0:
        raise CostLimitExceeded
    if isinstance(value, list | dict):
        for item in value:
            room = _room_beside(item, room)
    if isinstance(value, dict):
        for item in value.values():
            room = _room_beside(item, room)
    return room


def _as_string(value: Any, precision: int) -> str | None:
    kind = value.__class__
    if kind is Type:
        return str(value.name)
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested, value)) + "]"
    if isinstance(value, dict):
        return _show_map(value)
    if kind in (str, bool, int, UInt, float, bytes, Timestamp, Duration):
        return str(to_string(value))
    return None


def _show_map(value: dict[Any, Any]) -> str:
    pairs: list[tuple[str, str]] = []
    for kept, item in value.items():
        key = from_map_key(kept)
        if key.__class__ not in (str, bool, int, UInt):
            fail(f"error during formatting: no formatting function for map key of type {type_name(key)}")
        pairs.append((_nested(key), _nested(item)))
    return "{" + ", ".join(f"{key}:{item}" for key, item in sorted(pairs, key=lambda pair: pair[0])) + "}"


def _nested(value: Any) -> str:
    """A value inside a list or a map prints as a literal."""
    kind = value.__class__
    if kind is str:
        return quote(value)
    if kind is bytes:
        return "b" + quote(str(to_string(value)))
    if kind is float:
        return quote(_go_fixed(value)) if math.isnan(value) or math.isinf(value) else f"{value:.6f}"
    if kind is Timestamp:
        return f"timestamp({quote(format_timestamp(value))})"
    if kind is Duration:
        return f"duration({quote(format_duration(value))})"
    text = _as_string(value, 6)
    if text is None:
        fail(f"error during formatting: no formatting function for {type_name(value)}")
    return text


def _go_fixed(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _as_decimal(value: Any, precision: int) -> str | None:
    return str(int(value)) if value.__class__ in (int, UInt) else None


def _number(value: Any) -> float | None:
    if value.__class__ is str and value in _SPECIAL_NUMBERS:
        return float(to_double(value))
    return value if value.__class__ is float else None


def _as_fixed(value: Any, precision: int) -> str | None:
    number = _number(value)
    if number is None:
        return None
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    return f"{number or 0.0:,.{precision}f}"


def _as_scientific(value: Any, precision: int) -> str | None:
    number = _number(value)
    if number is None:
        return None
    if math.isnan(number) or math.isinf(number):
        return (_as_fixed(value, precision) or "").rjust(precision)
    mantissa, exponent = f"{number or 0.0:.6e}".split("e")
    digits = f"{'-' if exponent.startswith('-') else ''}{abs(int(exponent)):02d}"
    return f"{mantissa}×10{digits.translate(_SUPERSCRIPTS)}"


def _as_binary(value: Any, precision: int) -> str | None:
    if value.__class__ is bool:
        return "1" if value else "0"
    return f"{int(value):b}" if value.__class__ in (int, UInt) else None


def _hex(upper: bool) -> Callable[[Any, int], str | None]:
    def apply(value: Any, precision: int) -> str | None:
        if value.__class__ in (int, UInt):
            text = f"{int(value):x}"
        elif value.__class__ is str:
            text = value.encode("utf-8", "surrogatepass").hex()
        elif value.__class__ is bytes:
            text = value.hex()
        else:
            return None
        return text.upper() if upper else text

    return apply


def _as_octal(value: Any, precision: int) -> str | None:
    return f"{int(value):o}" if value.__class__ in (int, UInt) else None


_FORMATTERS: dict[str, Callable[[Any, int], str | None]] = {
    "s": _as_string,
    "d": _as_decimal,
    "f": _as_fixed,
    "e": _as_scientific,
    "b": _as_binary,
    "x": _hex(False),
    "X": _hex(True),
    "o": _as_octal,
}
