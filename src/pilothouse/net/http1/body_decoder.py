"""Taking message bodies out of a stream of bytes, by length or by chunks.

Sans-IO: bytes in, payload and left-over bytes out. Used for requests on the way in and for answers to our own requests.
"""

import re
from typing import ClassVar, Final, Protocol

from pilothouse.net.request_body import MalformedBody, Trailers

_MAX_LINE = 4096
_MAX_EXCESS = 16 * 1024
_MAX_DIGITS = 16
_TRAILER: Final = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)\r\n").fullmatch
_PLAIN_HEAD: Final = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n").match


class Decoder(Protocol):
    """Takes one message body out of a byte stream."""

    @property
    def trailers(self) -> Trailers:
        """What came after a body that has ended."""

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        """Return the payload in `data`, and what follows the body (None while the body goes on)."""


class LengthDecoder:
    """A body delimited by Content-Length."""

    __slots__ = ("remaining",)

    trailers: ClassVar[Trailers] = ()

    def __init__(self, length: int) -> None:
        self.remaining = length

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        remaining = self.remaining
        if len(data) < remaining:
            self.remaining = remaining - len(data)
            return data, None
        self.remaining = 0
        return data[:remaining], data[remaining:]


class ChunkedDecoder:
    """A body in chunked transfer coding; extensions are checked for their size and dropped, trailers kept."""

    __slots__ = ("_excess", "_in_trailer", "_line", "_remaining", "_trailer_size", "trailers")

    def __init__(self) -> None:
        self._line = b""
        self._remaining = 0  # payload left in the current chunk, its closing CRLF (2) included
        self._in_trailer = False
        self._trailer_size = 0
        self._excess = 0
        self.trailers: Trailers = ()

    def feed(self, data: bytes) -> tuple[bytes, bytes | None]:
        payload: list[bytes] = []
        at = 0
        while at < len(data):
            if not (self._remaining or self._line or self._in_trailer):
                at = self._take_whole(data, at, payload)
            if self._remaining:
                at = self._take_payload(data, at, payload)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                self._check_line()
                break
            self._line += data[at : end + 1]
            at = end + 1
            if self._end_line():
                return b"".join(payload), data[at:]
        return b"".join(payload), None

    def _take_whole(self, data: bytes, at: int, payload: list[bytes]) -> int:
        """Take all chunks that are complete and plain, as most are: a body may come in thousands of a byte each."""
        while (head := _PLAIN_HEAD(data, at)) is not None:
            size, begin = int(head[1], 16), head.end()
            if not size or data[begin + size : begin + size + 2] != b"\r\n":
                break
            payload.append(data[begin : begin + size])
            self._excess = max(0, self._excess + begin - at - 16 - 2 * size)
            at = begin + size + 2
        return at

    def _take_payload(self, data: bytes, at: int, payload: list[bytes]) -> int:
        wanted = self._remaining - 2
        if wanted > 0:
            piece = data[at : at + wanted]
            payload.append(piece)
            self._remaining -= len(piece)
            return at + len(piece)
        if data[at] != b"\n\r"[self._remaining - 1]:
            raise MalformedBody("malformed chunked encoding")
        self._remaining -= 1
        return at + 1

    def _check_line(self) -> None:
        if len(self._line) > _MAX_LINE:
            raise MalformedBody("header line too long")

    def _end_line(self) -> bool:
        self._check_line()
        line, self._line = self._line, b""
        if not line.endswith(b"\r\n"):
            raise MalformedBody("chunked line ends with bare LF")
        if self._in_trailer:
            self._trailer_size += len(line)
            if self._trailer_size > _MAX_LINE:
                raise MalformedBody("suspiciously long trailer after chunked body")
            return self._end_trailer(line)
        self._begin_chunk(line)
        return False

    def _end_trailer(self, line: bytes) -> bool:
        if line == b"\r\n":
            return True
        pair = _TRAILER(line)
        if pair is None:
            raise MalformedBody("malformed trailer after chunked body")
        self.trailers = (*self.trailers, (pair[1], pair[2].rstrip(b" \t")))
        return False

    def _begin_chunk(self, line: bytes) -> None:
        if b"\r" in line[:-2]:
            raise MalformedBody("invalid CR in chunked line")
        size = _chunk_size(line.rstrip().partition(b";")[0])
        # A sender of tiny chunks with long extensions makes us work for nothing; Go draws the same line.
        self._excess = max(0, self._excess + len(line) - 16 - 2 * size)
        if self._excess > _MAX_EXCESS:
            raise MalformedBody("chunked encoding contains too much non-data")
        if size:
            self._remaining = size + 2
        else:
            self._in_trailer = True


def _chunk_size(digits: bytes) -> int:
    if not digits:
        raise MalformedBody("empty hex number for chunk length")
    if digits[: _MAX_DIGITS + 1].strip(b"0123456789abcdefABCDEF"):
        raise MalformedBody("invalid byte in chunk length")
    if len(digits) > _MAX_DIGITS:
        raise MalformedBody("http chunk length too large")
    return int(digits, 16)
