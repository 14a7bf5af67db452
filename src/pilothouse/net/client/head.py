"""Reading the head of an answer. Pure functions of bytes.

What two HTTP parsers could read differently (bare CR or LF, folded lines, lengths that differ, codings other than
chunked) is refused: an answer that is passed on must mean the same to whoever reads it next.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from pilothouse.net.header_lists import MOST_TOKENS, list_tokens

MAX_HEAD: Final = 1 << 20
_STATUS: Final = re.compile(rb"HTTP/1\.([0-9]) ([0-9]{3})(?: ([\t\x20-\x7e\x80-\xff]*))?").fullmatch
_HEADER: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)").fullmatch
_PLAIN_VALUE: Final = re.compile(rb"[\x21-\x7e]+").fullmatch
_DIGITS: Final = re.compile(rb"[0-9]{1,18}").fullmatch
_MAX_HEADERS: Final = 1000
_WITHOUT_BODY: Final = frozenset({*range(200), 204, 304})
_ORDINARY_STATUS: Final = 128
_ORDINARY: Final = 4096  # longer heads and their lines are not worth remembering

Headers = list[tuple[bytes, bytes]]
Line = tuple[bytes, tuple[bytes, bytes]]
"""A header: its name in lower case, and the pair of name and value as it came."""


class MalformedReply(Exception):
    """What came is not HTTP as we know it."""


class ReplyHead:
    """Status and headers, and what they say about the body. Answers may share one: it is not changed once read.

    Heads that differ in a few last lines, which say nothing about the body, have their ``findings`` in common: what
    upper layers find in ``core`` may be left there, and ``further`` is what this one has beyond it.
    """

    __slots__ = (
        "_first", "chunked", "close", "core", "findings", "further", "is_ordinary", "length", "minor", "reason",
        "status",
    )  # fmt: skip

    def __init__(self, minor: int, status: int, reason: bytes, lines: list[Line]) -> None:
        self.minor = minor
        self.status = status
        self.reason = reason
        self.core = lines
        self.further: list[Line] = []
        self.findings: dict[object, Any] = {}
        self._first = dict(reversed(lines))
        self.length: int | None = None
        self.chunked = False
        self.close = minor == 0
        self.is_ordinary = False
        """Whether a body follows that is as long as is said here, and the connection goes on behind it."""

    @property
    def lines(self) -> list[Line]:
        """All headers."""
        return self.core + self.further if self.further else self.core

    @property
    def headers(self) -> Headers:
        """All headers as they came."""
        return [pair for _, pair in self.lines]

    def get(self, name: bytes) -> bytes:
        """The first value of a header (its name in lower case), empty where there is none."""
        pair = self._first.get(name)
        if pair is not None:
            return pair[1]
        return next((pair[1] for key, pair in self.further if key == name), b"")

    @property
    def repeats(self) -> bool:
        """Whether any header came more than once."""
        lines = self.lines
        return len(dict(lines)) != len(lines)

    def __contains__(self, name: bytes) -> bool:
        return name in self._first or (bool(self.further) and any(key == name for key, _ in self.further))

    def values(self, name: bytes) -> list[bytes]:
        """All values of a header."""
        return [pair[1] for key, pair in self.lines if key == name]

    def joined_by(self, lines: list[Line]) -> ReplyHead:
        """This head with other further lines, which say nothing about the body."""
        head = ReplyHead.__new__(ReplyHead)
        head.minor, head.status, head.reason = self.minor, self.status, self.reason
        head.core, head._first, head.findings, head.further = self.core, self._first, self.findings, lines
        head.length, head.chunked, head.close = self.length, self.chunked, self.close
        head.is_ordinary = self.is_ordinary
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


class HeadReader:
    """Reads the heads of one connection.

    An API server's answers to the same question differ in nothing but their ids within a second: what stands before
    and behind the id is held against the last head, and only the id is read.
    """

    __slots__ = ("_before", "_behind", "_date", "_head", "_key", "_name")

    def __init__(self) -> None:
        self._before = self._behind = self._name = self._key = b""
        self._date: list[Line] = []
        self._head: ReplyHead | None = None

    def read(self, data: bytes) -> ReplyHead:
        """The same as ``parse_head``."""
        head = self._head
        if head is not None and data.startswith(self._before):
            start = len(self._before)
            end = data.find(b"\r\n", start)
            value = data[start:end]
            if end >= 0 and data[end:] == self._behind and _PLAIN_VALUE(value):
                return head.joined_by([*self._date, (self._key, (self._name, value))])
        return self._read_whole(data)

    def _read_whole(self, data: bytes) -> ReplyHead:
        head = parse_head(data)
        name = next((name for name in _ID_NAMES if name in data), b"")
        at = data.find(name) + len(name)
        end = data.find(b"\r\n", at)
        if name and end >= 0 and head.further:
            self._before, self._behind = data[:at], data[end:]
            self._name, self._key = name[2:-2], name[2:-2].lower()
            self._date, self._head = [line for line in head.further if line[0] == b"date"], head
        return head


def _read_head(data: bytes) -> ReplyHead:
    status_line, *lines = data.split(b"\r\n")
    if len(lines) > _MAX_HEADERS:
        raise MalformedReply("net/http: too many headers in the response")
    read = _recall_line if len(data) <= _ORDINARY else _read_line
    status = _recall_status if len(status_line) <= _ORDINARY_STATUS else _read_status
    head = ReplyHead(*status(status_line), list(map(read, lines)))
    _read_framing(head)
    return head


_recall_head: Final = lru_cache(maxsize=1024)(_read_head)


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


_recall_status: Final = lru_cache(maxsize=64)(_read_status)
_recall_line: Final = lru_cache(maxsize=2048)(_read_line)
"""Servers send the same lines again and again."""
_ID_NAMES: Final = (b"\r\naudit-id: ", b"\r\nAudit-Id: ")
_PASSING: Final[Sequence[tuple[bytes, Callable[[bytes], Line]]]] = (
    (b"\r\nDate: ", _recall_line),
    *((name, _read_line) for name in _ID_NAMES),
)
"""How lines begin that are new each second, or with each answer of an API server, and say nothing of its body."""


def _read_framing(head: ReplyHead) -> None:
    if b"connection" in head:
        tokens = [token.lower() for token in list_tokens(head.values(b"connection"))]
        is_long = len(tokens) >= MOST_TOKENS  # whatever else it says
        head.close = is_long or b"close" in tokens or (head.close and b"keep-alive" not in tokens)
    if b"transfer-encoding" in head:
        codings = [value.lower() for value in head.values(b"transfer-encoding")]
        if codings != [b"chunked"]:
            raise MalformedReply(f"unsupported transfer encoding: {b', '.join(codings)[:64].decode('latin-1')!r}")
        head.chunked = True
        # With a length it is possibly smuggled: nothing after this answer is believed.
        head.close = head.close or b"content-length" in head
    elif b"content-length" in head:
        head.length = read_length(head)
        head.is_ordinary = not head.close and head.status not in _WITHOUT_BODY


def read_length(head: ReplyHead) -> int:
    """What Content-Length says. Raises MalformedReply."""
    length = head.get(b"content-length")
    if not _DIGITS(length):
        raise MalformedReply(f"bad Content-Length {length[:64].decode('latin-1')!r}")
    if head.repeats and any(other != length for other in head.values(b"content-length")):
        raise MalformedReply("http: message cannot contain multiple Content-Length headers")
    return int(length)
