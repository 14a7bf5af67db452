"""What Go's JSON package makes of a text where it differs from ours: errors in its words, repeated fields, escapes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from io import BytesIO
from typing import Any, Final

import orjson

from pilothouse.machinery import large_json
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.piecewise import occurs

_SPACE: Final = " \t\r\n"
_DIGITS: Final = "0123456789"
_LONG_INTEGER: Final = 19
MAX_DEPTH: Final = 10000
_S: Final = r"[ \t\r\n]*+"
_STRING: Final = r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_PLAIN: Final = rf"(?:{_STRING}|-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
_FLAT: Final = rf"(?:{_PLAIN}|\{{{_S}(?:{_STRING}{_S}:{_S}{_PLAIN}{_S}(?:,{_S}(?=\")|(?=\}})))*+\}})"
_WHITE: Final = re.compile(_S)
_ITEMS: Final = re.compile(rf"(?:{_FLAT}{_S},{_S}){{0,1500}}+")
_PAIRS: Final = re.compile(rf"(?:{_STRING}{_S}:{_S}{_FLAT}{_S},{_S}){{0,1500}}+")
"""Runs of flawless items and pairs, skipped in one step: a large body must not be walked character by character.

Not all in one step, though: other threads have to wait for the end of each."""
_CHARACTERS: Final = re.compile(_STRING.removeprefix('"').removesuffix('"'))
_NUMERALS: Final = re.compile(r"[0-9]*+")
_HEXADECIMAL: Final = re.compile(rb"[0-9a-fA-F]*+")
_PIECE: Final = 32 * 1024
_STRAYS: Final = re.compile("[\udc80-\udcff]++")
_HIGH, _LOW = r"u[dD][89abAB][0-9a-fA-F]{2}", r"u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPED: Final = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|({_HIGH}|{_LOW})|.)")
_PAIR: Final = re.compile(rf"\\{_HIGH}\\{_LOW}")
_WHOLE_ESCAPES: Final = re.compile(r"(?:[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+", re.DOTALL)
_ESCAPE: Final = len(r"\ud83d")
_SPACED_COLON: Final = re.compile(rb'"[ \t\r\n]++:')
_BLANK_COLON: Final = re.compile(rb"[ \t\r\n]:")
_MANY_BLANKS: Final = 4096
_BLANKS: Final = re.compile(rb"[ \t\r\n]{%d}" % (_MANY_BLANKS - 2))
"""So many that a colon behind them may stand too far from the quote before them."""


def json_type(value: Any) -> str:
    """How Go's decoder names a value that it did not expect."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    if isinstance(value, list):
        return "array"
    return "number"


class JSONSyntaxError(ValueError):
    """The first error of a text, as Go's scanner reports it."""


def explain(data: bytes) -> str:
    """Go's message for a text that is no JSON."""
    try:
        mend(data)
    except JSONSyntaxError as error:
        return str(error)
    return "invalid character in string literal"


def mend(data: bytes) -> bytes:
    """A text that Go reads and we do not, with replacement characters where bytes and escapes are no characters.

    Raises ``JSONSyntaxError`` for what is no JSON to Go either.
    """
    text = _decode(data)
    _Scanner(text).scan()
    return b"".join(
        _ESCAPED.sub(_whole_escape, _STRAYS.sub(_replaced, piece)).encode() for piece in _between_escapes(text)
    )


def sound(data: bytes) -> bytes:
    """A text that was read already, mended where it had to be; one that is too deep for that as it is."""
    try:
        large_json.loads(data)
    except orjson.JSONDecodeError:
        with suppress(JSONSyntaxError):
            return mend(data)
    return data


def _decode(data: bytes) -> str:
    """The text, with surrogates for bytes that are none; in pieces, because each such byte is slow."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    pieces = [decoder.decode(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)]
    return "".join((*pieces, decoder.decode(b"", final=True)))


def _between_escapes(text: str) -> Iterator[str]:
    """Pieces of a sound text, none of which ends within an escape or a pair of them."""
    at = 0
    while at < len(text):
        end = _WHOLE_ESCAPES.match(text, at, at + _PIECE).end()  # type: ignore[union-attr]
        if _PAIR.match(text, end - _ESCAPE):
            end += _ESCAPE
        yield text[at:end]
        at = end


def _replaced(found: re.Match[str]) -> str:
    """Each byte that is no part of a character becomes a character of its own."""
    return "\ufffd" * len(found[0])


def _whole_escape(found: re.Match[str]) -> str:
    """Half of a surrogate pair stands for nothing."""
    return "\\ufffd" if found[1] else found[0]


class _Scanner:
    """Reads a text with an explicit stack, so that depth costs memory and not Python frames."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def scan(self) -> None:
        stack: list[str] = []
        self._value_start(stack)
        while stack:
            self._after_value(stack)
        self._skip_space()
        if self.at < len(self.text):
            raise self._unexpected("after top-level value")

    def _value_start(self, stack: list[str]) -> None:
        """Read a scalar whole, or the opening of a container and then on to its first value."""
        while True:
            self._skip_space()
            if stack and stack[-1] == "[":
                self._skip(_ITEMS)
            char = self._peek()
            if char in "{[":
                self.at += 1
                stack.append(char)
                if len(stack) > MAX_DEPTH:
                    raise JSONSyntaxError("exceeded max depth")
                self._skip_space()
                if self._peek() == {"{": "}", "[": "]"}[char]:
                    self.at += 1
                    stack.pop()
                    return
                if char == "{":
                    self._key("looking for beginning of object key string")
                continue
            self._scalar(char)
            return

    def _after_value(self, stack: list[str]) -> None:
        self._skip_space()
        char = self._peek()
        inside_object = stack[-1] == "{"
        if char == ("}" if inside_object else "]"):
            self.at += 1
            stack.pop()
            return
        if char != ",":
            raise self._unexpected("after object key:value pair" if inside_object else "after array element")
        self.at += 1
        self._skip_space()
        if inside_object:
            self._key("looking for beginning of object key string")
        self._value_start(stack)

    def _key(self, context: str) -> None:
        self._skip(_PAIRS)
        if self._peek() != '"':
            raise self._unexpected(context)
        self._string()
        self._skip_space()
        if self._peek() != ":":
            raise self._unexpected("after object key")
        self.at += 1

    def _scalar(self, char: str) -> None:
        if char == '"':
            self._string()
        elif char == "-" or char in _DIGITS:
            self._number()
        elif char in "tfn":
            word = {"t": "true", "f": "false", "n": "null"}[char]
            for want in word:
                if self._peek() != want:
                    raise self._unexpected(f"in literal {word} (expecting {_char(want)})")
                self.at += 1
        else:
            raise self._unexpected("looking for beginning of value")

    def _string(self) -> None:
        self.at += 1
        while True:
            self._skip(_CHARACTERS)
            char = self._peek()
            if char == '"':
                self.at += 1
                return
            if char < " ":
                raise self._unexpected("in string")
            raise self._escape()

    def _escape(self) -> JSONSyntaxError:
        """The error of an escape that the pattern did not take. Its bytes are quoted, two or six of them."""
        start = self.text[self.at : self.at + 6].encode("utf-8", "surrogateescape")
        hexadecimal = start[1:2] == b"u"
        if len(start) < 2 or (hexadecimal and len(start) < 6 and _HEXADECIMAL.fullmatch(start[2:])):
            return JSONSyntaxError("unexpected end of JSON input")
        text = start[: 6 if hexadecimal else 2].decode("utf-8", "surrogateescape")
        if any(char in "`\ufffd" or char.isspace() or not char.isprintable() for char in text):
            return JSONSyntaxError(f"invalid escape sequence {quote(text)} in string")
        return JSONSyntaxError(f"invalid escape sequence `{text}` in string")

    def _number(self) -> None:
        if self._peek() == "-":
            self.at += 1
            if self._peek() not in _DIGITS:
                raise self._unexpected("in numeric literal")
        if self._peek() == "0":
            self.at += 1
        else:
            self._digits()
        if self.text[self.at : self.at + 1] == ".":
            self.at += 1
            if self._peek() not in _DIGITS:
                raise self._unexpected("in numeric literal")
            self._digits()
        if self.text[self.at : self.at + 1] in ("e", "E"):
            self.at += 1
            if self._peek() in "+-":
                self.at += 1
            if self._peek() not in _DIGITS:
                raise self._unexpected("in numeric literal")
            self._digits()

    def _digits(self) -> None:
        self._skip(_NUMERALS)

    def _skip(self, run: re.Pattern[str]) -> None:
        end = -1
        while end != self.at:
            end, self.at = self.at, run.match(self.text, self.at, self.at + _PIECE).end()  # type: ignore[union-attr]

    def _skip_space(self) -> None:
        if self.text[self.at : self.at + 1] in _SPACE:
            self._skip(_WHITE)

    def _peek(self) -> str:
        if self.at >= len(self.text):
            raise JSONSyntaxError("unexpected end of JSON input")
        return self.text[self.at]

    def _unexpected(self, context: str) -> JSONSyntaxError:
        return JSONSyntaxError(f"invalid character {_char(self.text[self.at])} {context}")


def _char(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return f"'\\x{ord(char) - 0xDC00:02x}'"
    if char == "'":
        return "'\\''"
    return "'\"'" if char == '"' else "'" + quote(char)[1:-1] + "'"


_LONG_TEXT: Final = 128 * 1024
_ESCAPED_FOR_HTML: Final = (b"<", b">", b"&", b"\xe2\x80")
_SEPARATORS: Final = ("\u2028".encode(), "\u2029".encode())


def escape_html(data: bytes) -> bytes:
    """JSON as Go's encoder writes it: characters that mean something to browsers are escaped inside strings."""
    if len(data) <= _LONG_TEXT:
        return _escape_html(data)
    if not any(character in data for character in _ESCAPED_FOR_HTML):
        return data
    written = BytesIO()
    for piece in _between_characters(data):
        written.write(_escape_html(piece))
    return written.getvalue()


def _between_characters(data: bytes) -> Iterator[bytes]:
    """Pieces of a long text, none of which ends within a character."""
    at = 0
    while at < len(data):
        end = at + _LONG_TEXT
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        yield data[at:end]
        at = end


def _escape_html(data: bytes) -> bytes:
    if b"<" in data:
        data = data.replace(b"<", b"\\u003c")
    if b">" in data:
        data = data.replace(b">", b"\\u003e")
    if b"&" in data:
        data = data.replace(b"&", b"\\u0026")
    if b"\xe2\x80" in data:
        for separator, escaped in zip(_SEPARATORS, (b"\\u2028", b"\\u2029"), strict=True):
            data = data.replace(separator, escaped)
    return data


_BEYOND_INTEGERS: Final = 2.0**63
_INFINITY: Final = float("inf")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{19}")
_PLAIN_FROM, _PLAIN_BELOW = 1e-6, 1e21


def format_number(value: float) -> str:
    """A float as Go's encoder writes it: the fewest digits that mean it, an exponent below 1e-6 and from 1e21 on."""
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return repr(value).replace("e-0", "e-")


def written_number(data: bytes, value: float) -> str | None:
    """How a number stands in a JSON text: the first that has this value and is not written as a short integer."""
    found: list[str] = []

    def note(text: str) -> float:
        number = float(text)
        if number == value:
            found.append(text)
        return number

    def note_long(text: str) -> float:
        return int(text) if len(text) < _LONG_INTEGER else note(text)

    try:
        large_json.loads_with(data, parse_float=note, parse_int=note_long)
    except (ValueError, RecursionError):
        return None
    return found[0] if found else None


def as_written(found: str, data: bytes) -> str:
    """``number …`` with the number as it stands in a JSON text; anything else as it is."""
    number = found.removeprefix("number ")
    if not data or number == found:
        return found
    return f"number {written_number(data, float(number)) or number}"


def with_whole_numbers(value: Any) -> Any:
    """The value with whole floats as integers: Go writes ``1.0`` as ``1``, and so reads an integer back."""
    if value.__class__ is float:
        return int(value) if value.is_integer() and abs(value) < _BEYOND_INTEGERS else value
    if value.__class__ is dict:
        return {key: with_whole_numbers(item) for key, item in value.items()}
    return [with_whole_numbers(item) for item in value] if value.__class__ is list else value


class BeyondFloats(ValueError):
    """A text whose syntax is flawless, with a number that no float is large enough for.

    ``value`` is what it says, with infinity in that place: kinds that have no such field never see it.
    """

    def __init__(self, number: str, value: Any) -> None:
        super().__init__(f"json: cannot unmarshal number {number} into Go value of type float64")
        self.number = number
        self.value = value


def read_mended(data: bytes) -> Any:
    """What a text says that Go may read though we did not.

    Raises ``JSONSyntaxError``, and ``BeyondFloats`` for a number that cannot be kept.
    """
    text, beyond = mend(data), []

    def note(number: str) -> float:
        value = float(number)
        if value in (_INFINITY, -_INFINITY):
            beyond.append(number)
        return value

    try:
        return large_json.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        value = large_json.loads_with(text, parse_float=note)
    except (RecursionError, ValueError):
        raise JSONSyntaxError("exceeded max depth") from None
    if not beyond:
        raise JSONSyntaxError("exceeded max depth")
    raise BeyondFloats(beyond[0], value)


def with_texts(data: bytes) -> Any:
    """What a text says, its strings and numbers as they stand in it, for messages that quote it; to be written alone.

    Raises ``ValueError`` and ``RecursionError`` for what cannot be read in this way.
    """
    return _TextDecoder().decode(data.decode())


class _TextDecoder(json.JSONDecoder):
    def __init__(self) -> None:
        super().__init__(parse_float=orjson.Fragment, parse_int=orjson.Fragment)
        self.parse_string = _string_text
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def _string_text(text: str, begin: int, strict: bool = True) -> tuple[orjson.Fragment, int]:
    _, end = json.decoder.scanstring(text, begin, strict)  # type: ignore[attr-defined]
    return orjson.Fragment(text[begin - 1 : end]), end


def may_be_beyond_integers(data: bytes) -> bool:
    """Whether a text may have a whole number that Go's integers have no room for; quick, and never wrong with no."""
    return occurs(_LONG_NUMBER, data, 19)


def without_long_integers(value: Any) -> Any:
    """The value as Go reads it without a schema: whole numbers beyond 64 bits with a sign are floats.

    Those are written with the fewest digits that mean them: ``9223372036854775808`` comes back as
    ``9223372036854776000``. What is nested deeper than anything that is taken stays as it is.
    """
    try:
        return _without_long(value)
    except RecursionError:
        return value


def _without_long(value: Any) -> Any:
    if value.__class__ is int:
        return value if -_BEYOND_INTEGERS <= value < _BEYOND_INTEGERS else int(Decimal(repr(float(value))))
    if value.__class__ is dict:
        return {key: _without_long(item) for key, item in value.items()}
    return [_without_long(item) for item in value] if value.__class__ is list else value


def may_repeat_fields(data: bytes, value: Any) -> bool:
    """Whether fields may stand twice in a text that was read as this value; quick, and never wrong when it says no.

    A key ends with a quote and a colon. Unless blanks part the two or a quote is written as a number, the text has as
    many of these as the value written anew, and more if fields were lost.
    """
    if b"\\u0022" in data or _has_spaced_colon(data):
        return True
    try:
        return _count_keys(data) != _count_keys(large_json.dumps(value))
    except orjson.JSONEncodeError:
        return True


def _places(data: bytes) -> range:
    return range(0, len(data), _PIECE)


def _has_spaced_colon(data: bytes) -> bool:
    return occurs(_BLANK_COLON, data, 1) and (
        occurs(_SPACED_COLON, data, _MANY_BLANKS) or occurs(_BLANKS, data, _MANY_BLANKS)
    )


def _count_keys(data: bytes) -> int:
    """How often a quote and a colon stand together."""
    if len(data) <= _PIECE:
        return data.count(b'":')
    return sum(data.count(b'":', at, at + _PIECE + 1) for at in _places(data))


def duplicate_fields(data: bytes) -> list[str]:
    """Paths of keys that stand twice in one object: ``spec.containers[0].image``, in document order."""

    class Pairs(list[tuple[str, Any]]):
        """An object's pairs as written."""

    def walk(value: Any, path: str) -> Iterator[str]:
        if isinstance(value, Pairs):
            seen = set()
            for key, item in value:
                where = f"{path}.{key}" if path else key
                if key in seen:
                    yield where
                seen.add(key)
                yield from walk(item, where)
        elif isinstance(value, list):
            for position, item in enumerate(value):
                yield from walk(item, f"{path}[{position}]")

    try:
        parsed = large_json.loads_with(sound(data), Pairs)
        return list(dict.fromkeys(walk(parsed, "")))
    except RecursionError:
        return []
