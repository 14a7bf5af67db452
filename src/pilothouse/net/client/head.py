"""Reading the head of an answer. Pure functions of bytes.

What two HTTP parsers could read differently (bare CR or LF, folded lines, lengths that differ, codings other than
chunked) is refused: an answer that is passed on must mean the same to whoever reads it next.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

MAX_HEAD: Final = 1 << 20
_STATUS: Final = re.compile(rb"HTTP/1\.([0-9]) ([0-9]{3})(?: ([\t\x20-\x7e\x80-\xff]*))?").fullmatch
_HEADER: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)").fullmatch
_DIGITS: Final = re.compile(rb"[0-9]{1,18}").fullmatch
_MAX_HEADERS: Final = 1000
_ORDINARY: Final = 4096  # longer heads and their lines are not worth remembering

Headers = list[tuple[bytes, bytes]]
Line = tuple[bytes, tuple[bytes, bytes]]
"""A header: its name in lower case, and the pair of name and value as it came."""


class MalformedReply(Exception):
    """What came is not HTTP as we know it."""


class ReplyHead:
    """Status and headers, and what they say about the body. Answers may share one: it is not changed once read."""

    __slots__ = ("_first", "chunked", "close", "length", "lines", "minor", "reason", "status")

    def __init__(self, minor: int, status: int, reason: bytes, lines: list[Line]) -> None:
        self.minor = minor
        self.status = status
        self.reason = reason
        self.lines = lines
        self._first = dict(reversed(lines))
        self.length: int | None = None
        self.chunked = False
        self.close = minor == 0

    @property
    def headers(self) -> Headers:
        """All headers as they came."""
        return [pair for _, pair in self.lines]

    def get(self, name: bytes) -> bytes:
        """The first value of a header (its name in lower case), empty where there is none."""
        pair = self._first.get(name)
        return b"" if pair is None else pair[1]

    @property
    def repeats(self) -> bool:
        """Whether any header came more than once."""
        return len(self._first) != len(self.lines)

    def __contains__(self, name: bytes) -> bool:
        return name in self._first

    def values(self, name: bytes) -> list[bytes]:
        """All values of a header."""
        return [pair[1] for key, pair in self.lines if key == name]

    def joined_by(self, lines: list[Line]) -> ReplyHead:
        """This head and further lines, which say nothing about the body."""
        head = ReplyHead.__new__(ReplyHead)
        head.minor, head.status, head.reason = self.minor, self.status, self.reason
        head.lines = self.lines + lines
        head._first = first = self._first.copy()
        for name, pair in lines:
            first.setdefault(name, pair)
        head.length, head.chunked, head.close = self.length, self.chunked, self.close
        return head


def parse_head(data: bytes) -> ReplyHead:
    """Parse a head without its final empty line. Raises MalformedReply.

    The answers of an API server are alike but for a few lines: the rest is read once and remembered.
    """
    if len(data) > _ORDINARY:
        return _read_head(data)
    passing: list[Line] = []
    for beginning, read in _PASSING:
        at = data.find(beginning)
        if at >= 0:
            end = data.find(b"\r\n", at + 2)
            line, data = (data[at + 2 :], data[:at]) if end < 0 else (data[at + 2 : end], data[:at] + data[end:])
            passing.append(read(line))
    head = _recall_head(data)
    return head.joined_by(passing) if passing else head


def _read_head(data: bytes) -> ReplyHead:
    status_line, *lines = data.split(b"\r\n")
    if len(lines) > _MAX_HEADERS:
        raise MalformedReply("net/http: too many headers in the response")
    read = _recall_line if len(data) <= _ORDINARY else _read_line
    head = ReplyHead(*_read_status(status_line), list(map(read, lines)))
    _read_framing(head)
    return head


_recall_head: Final = lru_cache(maxsize=1024)(_read_head)


@lru_cache(maxsize=64)
def _read_status(line: bytes) -> tuple[int, int, bytes]:
    match = _STATUS(line)
    if match is None:
        shown = line[:64].decode("latin-1").encode("unicode_escape").decode()
        raise MalformedReply(f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{shown}"')
    return int(match[1]), int(match[2]), match[3] or b""


def _read_line(line: bytes) -> Line:
    pair = _HEADER(line)
    if pair is None:
        raise MalformedReply("net/http: HTTP/1.x transport connection broken: malformed MIME header line")
    return pair[1].lower(), (pair[1], pair[2].rstrip(b" \t"))


_recall_line: Final = lru_cache(maxsize=2048)(_read_line)
"""Servers send the same lines again and again."""
_PASSING: Final = ((b"\r\nDate: ", _recall_line), (b"\r\naudit-id: ", _read_line), (b"\r\nAudit-Id: ", _read_line))
"""How lines begin that are new each second, or with each answer of an API server, and say nothing of its body."""


def _read_framing(head: ReplyHead) -> None:
    if b"connection" in head:
        tokens = [token.strip() for value in head.values(b"connection") for token in value.lower().split(b",")]
        head.close = b"close" in tokens or (head.close and b"keep-alive" not in tokens)
    if b"transfer-encoding" in head:
        codings = [value.lower() for value in head.values(b"transfer-encoding")]
        if codings != [b"chunked"]:
            raise MalformedReply(f"unsupported transfer encoding: {b', '.join(codings)[:64].decode('latin-1')!r}")
        head.chunked = True
        # With a length it is possibly smuggled: nothing after this answer is believed.
        head.close = head.close or b"content-length" in head
    elif b"content-length" in head:
        head.length = read_length(head)


def read_length(head: ReplyHead) -> int:
    """What Content-Length says. Raises MalformedReply."""
    length = head.get(b"content-length")
    if not _DIGITS(length):
        raise MalformedReply(f"bad Content-Length {length[:64].decode('latin-1')!r}")
    if head.repeats and any(other != length for other in head.values(b"content-length")):
        raise MalformedReply("http: message cannot contain multiple Content-Length headers")
    return int(length)
