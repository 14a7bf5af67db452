"""A request as it goes out, and headers that many requests have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pilothouse.net.client.head import Headers
from pilothouse.net.dialing.failures import OutgoingError
from pilothouse.net.http2.field_lines import encode_fields
from pilothouse.net.http2.hpack import encode_string

_join_pair = b": ".join
_HTTPS: Final = b"\x87"
_AUTHORITY: Final = b"\x01"
_REPEATABLE: Final = ("GET", "HEAD", "OPTIONS")
_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class FixedHeaders:
    """Headers that go with many requests, encoded once. ``authority`` is the value of Host, the first of them."""

    __slots__ = ("_http1", "_http2", "authority", "pairs")

    def __init__(self, authority: bytes, others: Sequence[tuple[bytes, bytes]]) -> None:
        self.authority = authority
        self.pairs = ((b"Host", authority), *others)
        self._http1: bytes | None = None
        self._http2: bytes | None = None

    @property
    def http1(self) -> bytes:
        """All as lines. Raises OutgoingError for a value that would break out of its line."""
        if self._http1 is None:
            self._http1 = encode_lines(self.pairs)
        return self._http1

    @property
    def http2(self) -> bytes:
        """All as fields, beginning with the pseudo-headers that are the same each time. Raises UnsafeHeader."""
        if self._http2 is None:
            self._http2 = encode_authority(self.authority) + encode_fields(self.pairs[1:])
        return self._http2


def encode_authority(authority: bytes) -> bytes:
    """The pseudo-headers for scheme and host. HTTP/2 is agreed on by TLS and there alone."""
    return _HTTPS + _AUTHORITY + encode_string(authority)


def encode_lines(pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Headers as lines of HTTP/1.1. Raises OutgoingError for a value that would break out of its line."""
    if not pairs:
        return b""
    block = b"\r\n".join(map(_join_pair, pairs)) + b"\r\n"
    if b"\0" in block or block.count(b"\n") != len(pairs) or block.count(b"\r") != len(pairs):
        raise OutgoingError(f'net/http: invalid header field value for "{_unsafe_name(pairs)}"')
    return block


def _unsafe_name(pairs: Sequence[tuple[bytes, bytes]]) -> str:
    for name, value in pairs:
        if b"\n" in value or b"\r" in value or b"\0" in value:
            return name.decode("latin-1")
    return ""


@dataclass(slots=True)
class Outbound:
    """A request as it goes out. ``target`` and ``headers`` are sent as they are; framing is added to match the body."""

    method: str
    target: bytes
    headers: Headers
    body: bytes | AsyncIterator[bytes] = b""
    length: int | None = None
    """The length of a body that is an iterator; None to send it in chunks."""
    trailers: Callable[[], Headers] | None = None
    """What to send after a body in chunks, asked when that is at its end."""
    fixed: FixedHeaders | None = None
    """Headers before ``headers``, Host among them."""
    encoded: bytes = b""
    """The head of a request without a body as HTTP/1.1 has it, where most of it is known from an earlier request."""

    @property
    def can_be_repeated(self) -> bool:
        """Whether it may go out again where a kept connection turns out to be dead."""
        return isinstance(self.body, bytes) and self.method in _REPEATABLE

    @property
    def declared_length(self) -> int | None:
        """The length to tell; None for a body without one, or a method that tells none of an empty body."""
        if not isinstance(self.body, bytes):
            return self.length
        return len(self.body) if self.body or self.method in _WITH_BODY else None

    def head(self) -> bytes:
        """Request line and headers. Raises OutgoingError for a value that would break out of its line."""
        if self.encoded:
            return self.encoded
        fixed = b"" if self.fixed is None else self.fixed.http1
        framing = b""
        if self.body != b"" or self.method in _WITH_BODY:
            length = self.declared_length
            framing = b"Transfer-Encoding: chunked\r\n" if length is None else b"Content-Length: %d\r\n" % length
        line = b"%b %b HTTP/1.1\r\n" % (self.method.encode(), self.target)
        return b"".join((line, fixed, encode_lines(self.headers), framing, b"\r\n"))
