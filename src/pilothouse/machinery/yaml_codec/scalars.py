"""Scalars of YAML 1.1: what a plain text stands for, and how values are written as text."""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
import re
from decimal import Decimal
from typing import Any, Final

TAG: Final = "tag:yaml.org,2002:"
_NOT_STRINGS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_HINTS: Final = frozenset("+-0123456789yYnNtTfFoO~.")
_INTEGER = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASE60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_DATE = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?"
_TIMESTAMP = re.compile(rf"{_DATE}(?:[Tt]{_CLOCK}(?:Z|[+-]([0-9]{{2}}):([0-9]{{2}}))| +{_CLOCK})?")
_RESOLVABLE: Final = frozenset(TAG + name for name in ("str", "bool", "int", "float", "null", "timestamp"))


class YamlError(ValueError):
    """A document that cannot be read; its message is what clients see."""


def fail(problem: str) -> YamlError:
    """The error for a problem in the document."""
    return YamlError(f"yaml: {problem}")


def resolve_tagged(tag: str | None, text: str) -> Any:
    """A scalar's value by its tag, or by its looks if it has none."""
    if not tag:
        return _resolve(text) if text[:1] in _HINTS or not text else text
    if tag == TAG + "binary":
        return _decode_binary(text)
    if tag == TAG + "str" or tag not in _RESOLVABLE:
        return text
    value = _resolve(text) if text[:1] in _HINTS or not text else text
    if tag == TAG + "timestamp" and _is_timestamp(text):
        return text
    found = TAG + _tag_of(value)
    if found == tag:
        return value
    if tag == TAG + "float" and found == TAG + "int":
        return float(value)
    raise fail(f"cannot decode !!{_tag_of(value)} `{text}` as a !!{tag.removeprefix(TAG)}")


def _tag_of(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "str")


def _decode_binary(text: str) -> str:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise fail("!!binary value contains invalid base64 data") from None


def reads_otherwise(text: str) -> bool:
    """Whether a plain text would be read as something other than text."""
    if text and text[0] not in _HINTS:
        return False
    return not isinstance(_resolve(text), str) or _is_timestamp(text) or _BASE60.fullmatch(text) is not None


def _resolve(text: str) -> Any:
    """The value that an untagged plain scalar stands for; timestamps are text."""
    if text in _NOT_STRINGS:
        return _NOT_STRINGS[text]
    if text[0] == ".":
        return _parse_float(text, text)
    if text[0] not in "+-0123456789":
        return text
    plain = text.replace("_", "")
    integer = _parse_integer(plain)
    return integer if integer is not None else _parse_float(plain, text)


def _parse_integer(plain: str) -> int | None:
    match = _INTEGER.fullmatch(plain)
    if match is None or len(plain) > 70:
        return None
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if decimal is not None:
        number = int(decimal)
    else:
        number = int(hexadecimal or binary or octal, 16 if hexadecimal else 2 if binary else 8)
    if sign == "-":
        return -number if number <= 2**63 else None
    return number if number < (2**63 if sign else 2**64) else None


def _parse_float(plain: str, text: str) -> float | str:
    if not _FLOAT.fullmatch(plain):
        return text
    number = float(plain)
    return number if math.isfinite(number) else text


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day, *rest = (int(group) if group else 0 for group in match.groups())
    hours, minutes, seconds = (max(rest[at], rest[at + 5]) for at in range(3))
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    longest = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return (
        1 <= month <= 12
        and 1 <= day <= longest[month - 1]
        and hours < 24
        and minutes < 60
        and seconds < 60
        and rest[3] <= 24
        and rest[4] <= 60
    )


def to_json(value: Any) -> Any:
    """A scalar after its way through JSON text: whole floats are integers, infinities are errors."""
    if type(value) is not float:
        return value
    if not math.isfinite(value):
        raise YamlError(f"json: unsupported value: {go_infinity(value)}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def go_infinity(value: float) -> str:
    """A float that is no number, as Go shows it."""
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def format_float(value: float, *, single: bool = False) -> str:
    """A float as ``%g`` shows it with the fewest digits: an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    sign, digits, power = _decompose(value, single)
    if -4 <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if 0 <= power < 6:
        whole, rest = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
        return f"{sign}{whole}.{rest}" if rest else sign + whole
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02}"


def _decompose(value: float, single: bool) -> tuple[str, str, int]:
    """Sign, fewest digits that read back as the same float (of 32 bits if ``single``), and the power of the first."""
    text = repr(value)
    if single:
        import struct

        with contextlib.suppress(OverflowError):
            packed = struct.pack("f", value)
            texts = (f"{value:.{places}e}" for places in range(9))
            text = next((text for text in texts if struct.pack("f", float(text)) == packed), text)
    sign, digits, exponent = Decimal(text).normalize().as_tuple()
    return "-" * sign, "".join(map(str, digits)), len(digits) - 1 + int(exponent)
