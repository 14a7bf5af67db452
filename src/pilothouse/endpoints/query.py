"""Query strings, read as Go's ``url.ParseQuery`` reads them and converted as kube-apiserver converts options."""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote

_EMPTY: Final[dict[str, list[str]]] = {}
_MAX_DIGITS: Final = 20


class Query:
    """A parsed query string. Pairs that Go refuses (a semicolon, a broken escape) are left out, as there."""

    __slots__ = ("values",)

    def __init__(self, text: str) -> None:
        self.values = parse(text) if text else _EMPTY

    def first(self, name: str) -> str | None:
        """The first value given, None when the name is not there at all."""
        values = self.values.get(name)
        return values[0] if values else None

    def text(self, name: str) -> str:
        """The first value given, or nothing."""
        values = self.values.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> list[str]:
        """All values given."""
        return self.values.get(name, [])

    def boolean(self, name: str) -> bool:
        """True unless absent, ``false`` or ``0``: the original takes any other value for true."""
        value = self.first(name)
        return value is not None and value.lower() not in ("false", "0")

    def optional_boolean(self, name: str) -> bool | None:
        """None when absent."""
        return None if self.first(name) is None else self.boolean(name)

    def integer(self, name: str) -> int | None:
        """A 64-bit integer; a 400 Status when it is none."""
        value = self.first(name)
        if value is None:
            return None
        return parse_integer(value)


def parse_integer(value: str) -> int:
    """Go's ``strconv.ParseInt`` on a query value, its failure as the original reports it."""
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not (digits.isascii() and digits.isdigit()):
        raise errors.bad_request(f"strconv.ParseInt: parsing {quote(value)}: invalid syntax")
    # Python refuses to read thousands of digits; no number of that length is in range.
    significant = digits.lstrip("0")[: _MAX_DIGITS + 1] or "0"
    number = -int(significant) if value[0] == "-" else int(significant)
    if not -(1 << 63) <= number < 1 << 63:
        raise errors.bad_request(f"strconv.ParseInt: parsing {quote(value)}: value out of range")
    return number


def parse(text: str) -> dict[str, list[str]]:
    """Names to their values, in order."""
    values: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, value = pair.partition("=")
        try:
            name, value = unescape(name), unescape(value)
        except ValueError:
            continue
        values.setdefault(name, []).append(value)
    return values


def unescape(text: str) -> str:
    """``%41+b`` → ``A b``; a broken escape raises ``ValueError``."""
    if "+" in text:
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    for piece in text.split("%")[1:]:
        if len(piece) < 2 or not _is_hex(piece[:2]):
            raise ValueError(f'invalid URL escape "%{piece[:2]}"')
    return unquote_to_bytes(text).decode("utf-8", "replace")


def _is_hex(text: str) -> bool:
    return all(c in "0123456789abcdefABCDEF" for c in text)
