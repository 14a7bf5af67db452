"""From decoded fields to the request line and header block that handlers know.

Refuses what Go's net/http refuses over HTTP/2, in the same two ways: what is malformed ends the stream, and headers
that only mean something to a connection are answered with a 400. A client repeats the same block on every request of
a kind, so a block is taken apart once and kept until the table it refers to changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pilothouse.net.http2 import frames, huffman
from pilothouse.net.http2.frames import ConnectionFailure, StreamFailure
from pilothouse.net.http2.hpack import Field, HeaderDecoder, HeaderListTooLarge, InvalidBlock, find_long_strings
from pilothouse.net.request_head import HeaderBlock, Refusal, RequestLine, is_host, parse_request_line

_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_BAD_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_DIGITS: Final = re.compile(rb"[0-9]{1,18}").fullmatch
_PSEUDO: Final = frozenset((b":method", b":scheme", b":path", b":authority"))
_SCHEMES: Final = (b"https", b"http")
_CONNECTION_HEADERS: Final = {
    b"connection": "Connection",
    b"proxy-connection": "Proxy-Connection",
    b"transfer-encoding": "Transfer-Encoding",
    b"upgrade": "Upgrade",
    b"keep-alive": "Keep-Alive",
}
_ORDINARY_NAME: Final = 128
_MOST_NAMES: Final = 1024
_known_names: set[bytes] = set()
_KNOWN_BLOCKS: Final = 64
_KNOWN_BLOCK: Final = 1024


class RequestHead:
    """What a block says. `error` is the text of a 400, where it must be one."""

    __slots__ = ("error", "headers", "line")

    def __init__(self, line: RequestLine, headers: HeaderBlock, error: str | None) -> None:
        self.line = line
        self.headers = headers
        self.error = error


class HeadDecoder:
    """Turns the blocks of one connection into heads."""

    __slots__ = ("_fields", "_heads", "_limit", "_too_long", "_version")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._fields = HeaderDecoder()
        self._heads: dict[bytes, RequestHead] = {}
        self._too_long = False
        """Whether a block had more text than is taken: nothing from there on can be decoded."""
        self._version = 0

    def request(self, block: bytes) -> RequestHead:
        """StreamFailure: malformed. HeaderListTooLarge: answer 431, nothing more can be decoded."""
        head = self._heads.get(block)
        if head is None:
            before = self._fields.version
            head = make_head(self._decode(block))
            if before == self._fields.version and len(block) <= _KNOWN_BLOCK:
                if len(self._heads) >= _KNOWN_BLOCKS:
                    self._heads.clear()
                self._heads[block] = head
        return head

    def unfold(self, block: bytes) -> Iterator[None]:
        """Do the long part of the work with a block, piece by piece; decoding it then tells how that ended."""
        try:
            yield from huffman.decode_ahead(find_long_strings(block), self._limit)
        except huffman.TooLong:
            self._too_long = True

    def trailers(self, block: bytes) -> list[Field]:
        """What comes after a body."""
        fields = self._decode(block)
        for name, value in fields:
            _check_name(name)
            if _BAD_VALUE(value) or name.startswith(b":"):
                raise StreamFailure(frames.PROTOCOL_ERROR, "invalid header or pseudo-header in trailers")
        return fields

    def skip(self, block: bytes) -> None:
        """Decode what nobody will read, for the sake of the table."""
        self._decode(block)

    def _decode(self, block: bytes) -> list[Field]:
        if self._too_long:
            raise HeaderListTooLarge
        try:
            return self._fields.decode(block, self._limit)
        except InvalidBlock as error:
            raise ConnectionFailure(frames.COMPRESSION_ERROR, str(error)) from error
        finally:
            if self._version != self._fields.version:
                self._version = self._fields.version
                self._heads.clear()


def _check_name(name: bytes) -> None:
    if not (_NAME(name) or name.startswith(b":")):
        raise StreamFailure(frames.PROTOCOL_ERROR, "invalid header")
    if len(name) <= _ORDINARY_NAME:
        if len(_known_names) >= _MOST_NAMES:
            _known_names.clear()
        _known_names.add(name)


def make_head(fields: list[Field]) -> RequestHead:
    """Check fields and give them the shape they have over HTTP/1.1."""
    pseudo: dict[bytes, bytes] = {}
    values: dict[bytes, bytes] = {}
    repeated: dict[bytes, list[bytes]] = {}
    if _BAD_VALUE(b"".join([value for _, value in fields])):
        raise StreamFailure(frames.PROTOCOL_ERROR, "invalid header")
    for name, value in fields:
        if name not in _known_names:
            _check_name(name)
        if name[:1] == b":":
            if values or name in pseudo or name not in _PSEUDO:
                raise StreamFailure(frames.PROTOCOL_ERROR, "misplaced pseudo-header")
            pseudo[name] = value
        elif name not in values:
            values[name] = value.strip(b" \t")
        elif name in repeated:
            repeated[name].append(value.strip(b" \t"))
        else:
            repeated[name] = [values[name], value.strip(b" \t")]
    if b"cookie" in repeated:
        values[b"cookie"] = b"; ".join(repeated.pop(b"cookie"))
    line = _make_line(pseudo)
    return RequestHead(line, _make_block(pseudo, values, repeated), _error(values, repeated))


def _make_line(pseudo: dict[bytes, bytes]) -> RequestLine:
    method, path = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if method == b"CONNECT":
        if b":path" in pseudo or b":scheme" in pseudo or not pseudo.get(b":authority"):
            raise StreamFailure(frames.PROTOCOL_ERROR, "malformed CONNECT")
        path = pseudo[b":authority"]
    elif pseudo.get(b":scheme") not in _SCHEMES or not (path.startswith(b"/") or path == b"*"):
        raise StreamFailure(frames.PROTOCOL_ERROR, "missing or wrong pseudo-header")
    try:
        return parse_request_line(b"%b %b HTTP/1.1" % (method, path))
    except Refusal as refusal:
        raise StreamFailure(frames.PROTOCOL_ERROR, "malformed method or path") from refusal


def _make_block(
    pseudo: dict[bytes, bytes], values: dict[bytes, bytes], repeated: dict[bytes, list[bytes]]
) -> HeaderBlock:
    host = pseudo.get(b":authority") or values.get(b"host", b"")
    repeated.pop(b"host", None)
    if not is_host(host):
        raise StreamFailure(frames.PROTOCOL_ERROR, "malformed authority")
    values[b"host"] = host
    lengths = repeated.pop(b"content-length", None) or [values.get(b"content-length", b"0")]
    if any(other != lengths[0] for other in lengths) or not _DIGITS(lengths[0]):
        raise StreamFailure(frames.PROTOCOL_ERROR, "malformed content-length")
    expect = values.get(b"expect", b"").lower()
    if expect == b"100-continue":
        del values[b"expect"]
    block = HeaderBlock(values, repeated)
    block.content_length = int(lengths[0]) if b"content-length" in values else None
    block.expect = expect
    return block


def _error(values: dict[bytes, bytes], repeated: dict[bytes, list[bytes]]) -> str | None:
    for name, shown in _CONNECTION_HEADERS.items():
        if name in values:
            return f'request header "{shown}" is not valid in HTTP/2'
    if b"te" in repeated or values.get(b"te", b"") not in (b"", b"trailers"):
        return 'request header "TE" may only be "trailers" in HTTP/2'
    return None


__all__ = ["HeadDecoder", "HeaderListTooLarge", "RequestHead", "make_head"]
