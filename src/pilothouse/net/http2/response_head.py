"""Encoding the head of an answer, without a table that changes: what is encoded for one client is right for all.

So the constant parts are kept for the whole server, and two connections that get the same answer get the same bytes.
The price is some tens of bytes an answer; the gain is that nothing has to be looked up for a client.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from pilothouse.net.dates import http_date
from pilothouse.net.http2 import hpack
from pilothouse.net.http2.field_lines import INDEX, encode_field, encode_fields, encode_name

_STATUS: Final = {int(value): index for index, (name, value) in enumerate(hpack.STATIC, 1) if name == b":status"}
_MAX_KNOWN: Final = 1024

_beginnings: dict[tuple[int, bytes], bytes] = {}
_LENGTH: Final = hpack.encode_integer(INDEX[b"content-length"], 4)


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
            self._field = encode_name(b"date") + hpack.encode_string(http_date(second))
        return self._field


_DATE: Final = _Date()
CONTINUE: Final = hpack.encode_integer(INDEX[b":status"], 4) + hpack.encode_string(b"100")


def may_have_body(status: int) -> bool:
    """Whether an answer with this status may have a body."""
    return status >= 200 and status not in (204, 304)


def block(status: int, content_type: bytes, headers: list[tuple[bytes, bytes]], length: int | None) -> bytes:
    """The header block of an answer."""
    beginning = _beginnings.get((status, content_type)) or _begin(status, content_type)
    if headers:
        beginning += encode_fields(headers)
    if length is None:
        return beginning + _DATE.current()
    digits = b"%d" % length
    return b"%b%b%b%c%b" % (beginning, _DATE.current(), _LENGTH, len(digits), digits)


def trailer_block(trailers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The header block of what comes after a body."""
    return encode_fields(trailers)


def _begin(status: int, content_type: bytes) -> bytes:
    if status in _STATUS:
        encoded = bytes((0x80 | _STATUS[status],))
    else:
        encoded = hpack.encode_integer(INDEX[b":status"], 4) + hpack.encode_string(b"%d" % status)
    if content_type:
        encoded += encode_field((b"content-type", content_type))
    if len(_beginnings) >= _MAX_KNOWN:
        _beginnings.clear()
    _beginnings[status, content_type] = encoded
    return encoded
