"""Encoding the head of a response: status line, date, framing and extra headers, with the constant parts cached."""

import time
from http import HTTPStatus

from pilothouse.net.dates import http_date
from pilothouse.net.messages import UnsafeHeader

REASONS = {int(status): status.phrase.encode() for status in HTTPStatus}
# Go's words where they differ from Python's.
REASONS.update(
    {
        203: b"Non-Authoritative Information",
        413: b"Request Entity Too Large",
        414: b"Request URI Too Long",
        416: b"Requested Range Not Satisfiable",
        418: b"I'm a teapot",
        422: b"Unprocessable Entity",
    }
)

_PREFIXES: dict[tuple[int, int, bytes], tuple[bytes, bool]] = {}
_MAX_PREFIXES = 1024
_join_pair = b": ".join


class DateLine:
    """The Date header, formatted once a second."""

    __slots__ = ("_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._text = b""

    def current(self) -> bytes:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._text = b"Date: " + http_date(second) + b"\r\n"
        return self._text


DATE = DateLine()


def prefix(minor: int, status: int, content_type: bytes) -> tuple[bytes, bool]:
    """Status line and Content-Type, and whether an answer with this status may have a body."""
    key = (minor, status, content_type)
    cached = _PREFIXES.get(key)
    if cached is None:
        if b"\r" in content_type or b"\n" in content_type:
            raise UnsafeHeader("line break in Content-Type")
        reason = REASONS.get(status, b"status code %d" % status)
        text = b"HTTP/1.%d %d %b\r\n" % (1 if minor else 0, status, reason)
        if content_type:
            text += b"Content-Type: %b\r\n" % content_type
        cached = text, status >= 200 and status not in (204, 304)
        if len(_PREFIXES) >= _MAX_PREFIXES:
            _PREFIXES.clear()
        _PREFIXES[key] = cached
    return cached


def extra_lines(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The extra headers as lines; refuses any that would break out of its line."""
    if not headers:
        return b""
    lines = b"\r\n".join(map(_join_pair, headers)) + b"\r\n"
    if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
        raise UnsafeHeader("line break in a response header")
    return lines
