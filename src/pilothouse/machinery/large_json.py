"""Reads and writes JSON without one long call: however long a text is, other threads get their turn meanwhile.

The parser is a C library that keeps the interpreter's lock from the first byte of a text to its last: 3 MB of it take
15 to 50 ms, in which no other thread can do anything. So a long text is cut where that is cheap, between the
items of its lists and objects, into pieces that are read one by one. Where to cut is found by a pattern that knows
strings and brackets and nothing else of JSON; whether each piece is sound, the parser says.

    {"a":[1,2,…,9],"b":{}}     the object is longer than a piece: it is entered
          1,2,…                pieces of its first list, each read as a list of its own and appended
                   "b":{}      the rest, read as an object of its own

A string that is longer than a piece is cut between characters, and each part of it is read as a string of its own.

Writing goes the other way: what has many items is written some at a time, and containers of few are entered; long
strings are written in parts.
"""

from __future__ import annotations

import json
import re
from asyncio import _get_running_loop
from collections.abc import Callable
from functools import partial
from io import SEEK_CUR, BytesIO
from itertools import islice
from typing import Any, Final

import orjson

from pilothouse.machinery.disposal import dispose
from pilothouse.machinery.workers import ABANDONED, checkpoint

WHOLE: Final = 96 * 1024
"""Up to how many bytes a text is read in one call."""
_PIECE: Final = 8 * 1024
_MANY: Final = 200
_MOST_ENTERED: Final = 1_000
_DEEPEST_ENTERED: Final = 8
_DEEPEST: Final = 1000
"""What the parser takes of nested values, and somewhat less: deeper texts are refused anyway."""
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_NESTED_LEVELS: Final = 12


def _nested(levels: int) -> bytes:
    """A pattern for a list or object that has at most so many levels of others inside."""
    inner = rb'[^"\[\]{}]++|' + _STRING
    pattern = rb"[\[{](?:" + inner + rb")*+[\]}]"
    for _ in range(levels):
        pattern = rb"[\[{](?:" + inner + b"|" + pattern + rb")*+[\]}]"
    return pattern


_ITEM: Final = rb'(?:[^"\[\]{},]++|' + _STRING + b"|" + _nested(_NESTED_LEVELS) + b")"
_patterns: list[re.Pattern[bytes]] = []
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_WORD: Final = re.compile(rb"[-+.0-9A-Za-z]*+")
_CHARACTERS: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_WHOLE_CHARACTERS: Final = re.compile(rb'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+', re.DOTALL)
_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_ESCAPE: Final = len(b"\\ud83d")
_PART: Final = 32 * 1024
"""Up to how many bytes or characters a string is read or written in one call."""
_CLOSING: Final = {0x5B: 0x5D, 0x7B: 0x7D}


class _Unsound(orjson.JSONDecodeError):
    """What was cut is no JSON; why, is told by those who read it from the beginning."""

    def __init__(self) -> None:
        super().__init__("unsound", "", 0)


class _TooDeep(_Unsound):
    """Values are nested deeper than anything that is taken."""


def loads(data: bytes) -> Any:
    """What ``orjson.loads`` gives. Raises its error, which says nothing about the place if the text is long.

    On an event loop, which is what others wait for, one call is the shorter way.
    """
    if len(data) <= WHOLE or _get_running_loop() is not None:
        return orjson.loads(data)
    return _Reader(data).read()


def dumps(value: Any) -> bytes:
    """What ``orjson.dumps`` gives and raises. On an event loop it is one call, as with ``loads``."""
    if _get_running_loop() is not None:
        return orjson.dumps(value)
    writer = _Writer()
    writer.write(value)
    return writer.written()


def dumps_short(value: Any, most: int) -> bytes | None:
    """What ``dumps`` gives, where that is no longer; of a long value hardly more is made."""
    if _get_running_loop() is not None:
        written = orjson.dumps(value)
        return written if len(written) <= most else None
    writer = _Writer(most)
    try:
        writer.write(value)
    except _TooLong:
        return None
    return writer.written()


class _TooLong(Exception):
    """More was written than is wanted."""


class _Writer:
    """Writes one value. Few containers are entered, and not deep ones: each costs a few calls."""

    __slots__ = ("_add", "_enters", "_most", "_out")

    def __init__(self, most: int | None = None) -> None:
        self._enters = _MOST_ENTERED
        self._out = BytesIO()  # what is written is in memory once, which pieces and what they are joined to is not
        self._most = most
        self._add = self._out.write if most is None else self._add_within

    def _add_within(self, piece: bytes) -> int:
        if self._most is not None and self._out.tell() + len(piece) > self._most:
            raise _TooLong
        return self._out.write(piece)

    def written(self) -> bytes:
        """The bytes so far."""
        return self._out.getvalue()

    def write(self, value: Any, depth: int = 0) -> None:
        """Add the pieces of a value that stands so deep in others."""
        kind = value.__class__
        if kind is str and len(value) > _PART:
            self._write_text(value)
            return
        if (kind is not dict and kind is not list) or not value or not self._enters or depth == _DEEPEST_ENTERED:
            self._add(_written(value, depth))
            return
        if ABANDONED:
            checkpoint()
        opening, closing = (b"[", b"]") if kind is list else (b"{", b"}")
        self._add(opening)
        if len(value) > _MANY:
            self._write_parts(value, depth)
        else:
            self._enters -= 1
            self._write_items(value, depth)
        self._out.seek(-1, SEEK_CUR)
        self._add(closing)  # instead of a comma

    def _write_items(self, value: Any, depth: int) -> None:
        for item in value:
            if value.__class__ is dict:
                self._write_key(item, depth)
                item = value[item]
            self.write(item, depth + 1)
            self._add(b",")

    def _write_key(self, key: Any, depth: int) -> None:
        if key.__class__ is str and len(key) > _PART:
            self._write_text(key)
            self._add(b":")
        else:
            self._add(_written({key: None}, depth)[1 : -len(b"null}")])

    def _write_text(self, text: str) -> None:
        self._add(b'"')
        for at in range(0, len(text), _PART):
            self._add(orjson.dumps(text[at : at + _PART])[1:-1])
        self._add(b'"')

    def _write_parts(self, value: Any, depth: int) -> None:
        """Items as they come, some at a time; a long one among them is written whole."""
        items = iter(value if value.__class__ is list else value.items())
        while part := list(islice(items, _MANY)):
            self._add(_written(part if value.__class__ is list else dict(part), depth)[1:-1])
            self._add(b",")


def _written(value: Any, depth: int) -> bytes:
    """In one call. The value may be as deep as the library lets it be where it stands."""
    for _ in range(depth):
        value = [value]
    data = orjson.dumps(value)
    return data[depth : len(data) - depth]


def loads_with(data: bytes, pairs: type[list[Any]] | None = None, **hooks: Any) -> Any:
    """What ``json.loads`` gives and raises with these hooks; with ``pairs``, objects become such lists."""
    parse: Callable[[bytes], Any] = partial(json.loads, object_pairs_hook=pairs, **hooks)
    try:
        return parse(data) if len(data) <= WHOLE else _Reader(data, parse, pairs or dict).read()
    except _TooDeep:
        raise RecursionError from None


class _Reader:
    """Reads a long text from its beginning to its end, with a stack of the containers that it is in."""

    def __init__(self, data: bytes, parse: Callable[[bytes], Any] = orjson.loads, mapping: type[Any] = dict) -> None:
        self._data = data
        self._parse, self._mapping = parse, mapping
        self._at = 0
        if not _patterns:  # compiled with the first long text: most servers see none
            _patterns[:] = (re.compile(b"(?:" + _ITEM + b"++,)*+", re.DOTALL), re.compile(_ITEM + b"*+", re.DOTALL))
        self._run, self._last = _patterns

    def read(self) -> Any:
        """The whole value."""
        self._skip(_SPACE)
        if self._peek() not in _CLOSING:
            return self._parse(self._data)  # a scalar: a string at most, which is read as fast as it is copied
        stack: list[tuple[int, Any]] = []
        root = self._enter(stack)
        try:
            while stack:
                self._continue(stack)
            self._skip(_SPACE)
            if self._at < len(self._data):
                raise _Unsound
        except BaseException as error:
            error.__traceback__ = None  # its frames have the containers as well
            stack.clear()
            made = [root]
            del root
            dispose(made)
            raise
        return root

    def _enter(self, stack: list[tuple[int, Any]]) -> Any:
        """A new container, which is then the innermost."""
        opening = self._data[self._at]
        container: Any = self._mapping() if opening == 0x7B else []
        stack.append((opening, container))
        if len(stack) > _DEEPEST:
            raise _TooDeep
        self._at += 1
        return container

    def _continue(self, stack: list[tuple[int, Any]]) -> None:
        """Read on in the innermost container: a piece of it, its rest, or the beginning of one long item."""
        if ABANDONED:
            checkpoint()
        opening, container = stack[-1]
        end = self._run.match(self._data, self._at, self._at + _PIECE).end()  # type: ignore[union-attr]
        if end > self._at:
            self._add(opening, container, end - 1, empty=False)
            self._at = end
            return
        end = self._last.match(self._data, self._at, self._at + _PIECE).end()  # type: ignore[union-attr]
        if end < len(self._data) and self._data[end] == _CLOSING[opening]:
            self._add(opening, container, end, empty=not container)
            self._at = end + 1
            stack.pop()
            self._after_item(stack)
            return
        self._long_item(opening, container, stack)

    def _add(self, opening: int, container: Any, end: int, *, empty: bool) -> None:
        """Read a piece; only the whole of a container may have nothing in it."""
        piece = self._data[self._at : end]
        items = self._parse(b"{" + piece + b"}" if opening == 0x7B else b"[" + piece + b"]")
        if container.__class__ is dict:
            container.update(items)
        else:
            container += items
        if not items and not empty:
            raise _Unsound

    def _long_item(self, opening: int, container: Any, stack: list[tuple[int, Any]]) -> None:
        """An item that is longer, or nested deeper, than what a piece can have."""
        key = None
        self._skip(_SPACE)
        if self._peek() == _CLOSING[opening] and not container:
            self._after_item(stack)
            return
        if opening == 0x7B:
            key = self._scalar()
            self._skip(_SPACE)
            if not isinstance(key, str) or self._peek() != 0x3A:
                raise _Unsound
            self._at += 1
            self._skip(_SPACE)
        entered = self._peek() in _CLOSING
        value = self._enter(stack) if entered else self._scalar()
        if container.__class__ is dict:
            container[key] = value
        else:
            container.append(value if opening == 0x5B else (key, value))
        if not entered:
            self._after_item(stack)

    def _scalar(self) -> Any:
        begin = self._at
        if self._peek() == 0x22:
            self._at += 1
            self._skip(_CHARACTERS)
            self._at += 1  # the quote, or the end of what the parser then refuses
            if self._at - begin > _PART:
                return self._string(begin + 1, self._at - 1)
        else:
            self._skip(_WORD)
        return self._parse(self._data[begin : self._at])

    def _string(self, at: int, end: int) -> str:
        """A long string, the characters of which are in this range."""
        if end >= len(self._data):
            raise _Unsound
        parts: list[str] = []
        while at < end:
            if ABANDONED:
                checkpoint()
            cut = self._cut(at, end)
            parts.append(self._parse(b'"' + self._data[at:cut] + b'"'))
            at = cut
        return "".join(parts)

    def _cut(self, at: int, end: int) -> int:
        """Where a part of a string ends: neither within a character nor within one that is written as two escapes."""
        cut = _WHOLE_CHARACTERS.match(self._data, at, min(at + _PART, end)).end()  # type: ignore[union-attr]
        if _PAIR.match(self._data, cut - _ESCAPE):
            cut += _ESCAPE
        for _ in range(3):
            cut -= self._data[cut] & 0xC0 == 0x80
        if cut <= at or self._data[cut] & 0xC0 == 0x80:
            raise _Unsound
        return cut

    def _after_item(self, stack: list[tuple[int, Any]]) -> None:
        """Behind an item that was read alone: a comma and more, or the ends of containers."""
        while stack:
            self._skip(_SPACE)
            if self._peek() == 0x2C:
                self._at += 1
                return
            if self._peek() != _CLOSING[stack.pop()[0]]:
                raise _Unsound
            self._at += 1

    def _skip(self, run: re.Pattern[bytes]) -> None:
        end = -1
        while end != self._at:
            end, self._at = self._at, run.match(self._data, self._at, self._at + _PIECE).end()  # type: ignore[union-attr]

    def _peek(self) -> int:
        if self._at >= len(self._data):
            raise _Unsound
        return self._data[self._at]
