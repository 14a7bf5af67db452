"""Query strings, read as Go's ``url.ParseQuery`` reads them and converted as kube-apiserver converts options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.selection import Selection

_EMPTY: Final[dict[str, list[str]]] = {}
_MAX_DIGITS: Final = 20
_MOST: Final = 10_000
"""So many parameters Go reads of a query; of one that has more, it reads none and says nothing."""
_AT_ONCE: Final = 16 * 1024
_BROKEN_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})[^%]{0,2}")


class Query:
    """A parsed query string. Pairs that Go refuses (a semicolon, a broken escape) are left out, as there."""

    __slots__ = ("_selection", "values")

    def __init__(self, text: str) -> None:
        self.values = parse(text) if text else _EMPTY
        self._selection: Selection | None = None

    @property
    def selection(self) -> Selection:
        """Both selectors; all who need them share one reading."""
        found = self._selection
        if found is None:
            found = self._selection = Selection(self.text("fieldSelector"), self.text("labelSelector"))
        return found

    def first(self, name: str) -> str | None:
        """The first value given, None when the name is not there at all."""
        values = self.values.get(name)
        return values[0] if values else None

    def text(self, name: str) -> str:
        """The first value given, or nothing."""
        values = self.values.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> list[str]:
        """All values given, as a list of the caller's own."""
        return list(self.values.get(name, ()))

    def boolean(self, name: str) -> bool:
        """True unless absent, ``false`` or ``0``: kube-apiserver takes any other value for true."""
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
    """Go's ``strconv.ParseInt`` on a query value, its failure as kube-apiserver reports it."""
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
    """Names to their values, in order; none at all of more than Go's ``net/url`` reads."""
    values: dict[str, list[str]] = {}
    if text.count("&") >= _MOST:
        return values
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
    if len(text) <= _AT_ONCE:
        return _unescape_piece(text).decode("utf-8", "replace")
    return b"".join(map(_unescape_piece, _pieces(text))).decode("utf-8", "replace")


def _unescape_piece(text: str) -> bytes:
    if broken := _BROKEN_ESCAPE.search(text):
        raise ValueError(f'invalid URL escape "{broken[0]}"')
    return unquote_to_bytes(text)


def _pieces(text: str) -> Iterator[str]:
    """A long text in parts, no escape divided: while it is read, a text takes some fifty times its size."""
    at = 0
    while at < len(text):
        end = at + _AT_ONCE
        if end < len(text) and (escape := text.rfind("%", end - 2, end)) > at:
            end = escape
        yield text[at:end]
        at = end
