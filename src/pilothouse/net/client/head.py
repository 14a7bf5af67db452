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
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})

Headers = list[tuple[bytes, bytes]]


class MalformedReply(Exception):
    """What came is not HTTP as we know it."""


class ReplyHead:
    """Status and headers, and what they say about the body."""

    __slots__ = ("_values", "chunked", "close", "headers", "length", "minor", "reason", "status")

    def __init__(self, minor: int, status: int, reason: bytes, headers: Headers, values: dict[bytes, bytes]) -> None:
        self.minor = minor
        self.status = status
        self.reason = reason
        self.headers = headers
        self._values = values
        self.length: int | None = None
        self.chunked = False
        self.close = minor == 0

    def get(self, name: bytes) -> bytes:
        """The first value of a header (its name in lower case), empty where there is none."""
        return self._values.get(name, b"")


def parse_head(data: bytes) -> ReplyHead:
    """Parse a head without its final empty line. Raises MalformedReply."""
    status_line, *lines = data.split(b"\r\n")
    match = _STATUS(status_line)
    if match is None:
        shown = status_line[:64].decode("latin-1").encode("unicode_escape").decode()
        raise MalformedReply(f'net/http: HTTP/1.x transport connection broken: malformed HTTP response "{shown}"')
    if len(lines) > _MAX_HEADERS:
        raise MalformedReply("net/http: too many headers in the response")
    headers: Headers = []
    values: dict[bytes, bytes] = {}
    framing: Headers = []
    for line in lines:
        name, value, key = _read_line(line)
        headers.append((name, value))
        values.setdefault(key, value)
        if key in _FRAMING:
            framing.append((key, value))
    head = ReplyHead(int(match[1]), int(match[2]), match[3] or b"", headers, values)
    _read_framing(head, framing)
    return head


@lru_cache(maxsize=2048)
def _read_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Name, value, and the name in lower case. Servers send the same lines again and again."""
    pair = _HEADER(line)
    if pair is None:
        raise MalformedReply("net/http: HTTP/1.x transport connection broken: malformed MIME header line")
    return pair[1], pair[2].rstrip(b" \t"), pair[1].lower()


def _read_framing(head: ReplyHead, framing: Headers) -> None:
    lengths: set[bytes] = set()
    codings: list[bytes] = []
    for key, value in framing:
        if key == b"content-length":
            lengths.add(value)
        elif key == b"transfer-encoding":
            codings.append(value.lower())
        elif key == b"connection":
            tokens = [token.strip() for token in value.lower().split(b",")]
            head.close = b"close" in tokens or (head.close and b"keep-alive" not in tokens)
    if codings:
        if codings != [b"chunked"]:
            raise MalformedReply(f"unsupported transfer encoding: {b', '.join(codings)[:64].decode('latin-1')!r}")
        head.chunked = True
        head.close = head.close or bool(lengths)  # possibly smuggled: nothing after this answer is believed
        return
    if len(lengths) > 1:
        raise MalformedReply("http: message cannot contain multiple Content-Length headers")
    for length in lengths:
        if not _DIGITS(length):
            raise MalformedReply(f"bad Content-Length {length[:64].decode('latin-1')!r}")
        head.length = int(length)
