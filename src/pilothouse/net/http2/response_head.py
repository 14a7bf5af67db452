"""Encoding the head of an answer, without a table that changes: what is encoded for one client is right for all.

So the constant parts are kept for the whole server, and two connections that get the same answer get the same bytes.
The price is some tens of bytes an answer; the gain is that nothing has to be looked up for a client.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from email.utils import formatdate
from typing import Final

from pilothouse.net.http2 import hpack
from pilothouse.net.messages import UnsafeHeader

_INDEX: Final = {field[0]: index for index, field in reversed(list(enumerate(hpack.STATIC, 1)))}
_STATUS: Final = {int(value): index for index, (name, value) in enumerate(hpack.STATIC, 1) if name == b":status"}
_HOP_BY_HOP: Final = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_UNSAFE: Final = re.compile(rb"[\0\r\n]").search
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_MAX_KNOWN: Final = 1024

_beginnings: dict[tuple[int, bytes], bytes] = {}
_names: dict[bytes, bytes] = {}
_lines: dict[tuple[bytes, bytes], bytes] = {}
_LENGTH: Final = hpack.encode_integer(_INDEX[b"content-length"], 4)
_SHORT: Final = 127  # strings up to here have a length of one byte


class _Date:
    """The date, formatted once a second."""

    __slots__ = ("_field", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._field = b""

    def current(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._field = _name(b"date") + hpack.encode_string(formatdate(second, usegmt=True).encode())
        return self._field


_DATE: Final = _Date()
CONTINUE: Final = hpack.encode_integer(_INDEX[b":status"], 4) + hpack.encode_string(b"100")


def may_have_body(status: int) -> bool:
    """Whether an answer with this status may have a body."""
    return status >= 200 and status not in (204, 304)


def block(status: int, content_type: bytes, headers: list[tuple[bytes, bytes]], length: int | None) -> bytes:
    """The header block of an answer."""
    beginning = _beginnings.get((status, content_type)) or _begin(status, content_type)
    if headers:
        beginning += b"".join([_lines.get(pair) or _line(pair) for pair in headers])
    if length is None:
        return beginning + _DATE.current()
    digits = b"%d" % length
    return b"%b%b%b%c%b" % (beginning, _DATE.current(), _LENGTH, len(digits), digits)


def trailer_block(trailers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The header block of what comes after a body."""
    return b"".join(map(_line, trailers))


def _begin(status: int, content_type: bytes) -> bytes:
    if status in _STATUS:
        encoded = bytes((0x80 | _STATUS[status],))
    else:
        encoded = hpack.encode_integer(_INDEX[b":status"], 4) + hpack.encode_string(b"%d" % status)
    if content_type:
        encoded += _line((b"content-type", content_type))
    if len(_beginnings) >= _MAX_KNOWN:
        _beginnings.clear()
    _beginnings[status, content_type] = encoded
    return encoded


def _name(name: bytes) -> bytes:
    """A name, ready for a value behind it; empty for one that HTTP/2 has no place for."""
    known = _names.get(name)
    if known is None:
        lower = name.lower()
        if not _NAME(lower):
            raise UnsafeHeader(f"response header named {name!r}")
        if lower in _HOP_BY_HOP:
            known = b""
        elif lower in _INDEX:
            known = hpack.encode_integer(_INDEX[lower], 4)
        else:
            known = b"\0" + hpack.encode_string(lower)
        if len(_names) >= _MAX_KNOWN:
            _names.clear()
        _names[name] = known
    return known


def _line(pair: tuple[bytes, bytes]) -> bytes:
    name, value = pair
    encoded_name = _name(name)
    if _UNSAFE(value):
        raise UnsafeHeader("line break in a response header")
    if not encoded_name:
        return b""
    size = len(value)
    encoded = b"%b%c%b" % (encoded_name, size, value) if size < _SHORT else encoded_name + hpack.encode_string(value)
    if size <= 24:  # what is longer is likely an id, and seen once
        if len(_lines) >= _MAX_KNOWN:
            _lines.clear()
        _lines[pair] = encoded
    return encoded
