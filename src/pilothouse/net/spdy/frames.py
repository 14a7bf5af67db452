"""Frames of SPDY/3.1: bytes in, frames out, and the other way round. Sans-IO.

    control  1 version(15) type(16) | flags(8) length(24) | payload
    data     0 stream(31)           | flags(8) length(24) | payload

Data is handed out as it arrives, so a frame costs no memory however long it is. Control frames, what their headers
decompress to and how many values that are is bounded, by far more than streams of containers have. Header blocks of one
direction share one compression context, so frames with headers must be read and written in order.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final, NamedTuple

from pilothouse.net.spdy.dictionary import DICTIONARY
from pilothouse.net.unread_input import UnreadInput

VERSION: Final = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 1
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL = 1, 2, 3, 5
MAX_CONTROL: Final = 1 << 15
MAX_HEADER_BLOCK: Final = 1 << 14
MAX_DATA: Final = 1 << 15
_MAX_HEADERS: Final = 100
_HEAD: Final = struct.Struct(">II")
_CONTROL_BIT: Final = 1 << 31
_STREAM_MASK: Final = (1 << 31) - 1
_KNOWN: Final = frozenset({SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE})
_SIZES: Final = {RST_STREAM: 8, PING: 4, GOAWAY: 8, WINDOW_UPDATE: 8}

HeaderMap = dict[str, list[str]]


class SpdyError(Exception):
    """What came is not SPDY; nothing after it can be believed."""


class Data(NamedTuple):
    """A piece of a stream; ``fin`` with its last."""

    stream: int
    payload: bytes
    fin: bool


class Control(NamedTuple):
    """Any other frame. ``value`` is the status of a reset, or the delta of a window update."""

    type: int
    stream: int
    """The stream, or the number of a ping."""
    fin: bool
    headers: HeaderMap
    value: int = 0


class FrameReader(UnreadInput):
    """Takes frames out of a stream of bytes: ``feed`` takes bytes as they come, ``next_frame`` gives what is there."""

    def __init__(self) -> None:
        super().__init__()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._stream = 0  # of the data frame that is arriving
        self._left = 0
        self._fin = False

    def next_frame(self) -> Data | Control | None:
        """The next frame, or piece of a data frame; None until there is more input. Raises SpdyError."""
        data, at = self._data, self._at
        if not self._left:
            if len(data) - at < _HEAD.size:
                return None
            first, second = _HEAD.unpack_from(data, at)
            flags, length = second >> 24, second & 0xFFFFFF
            if first & _CONTROL_BIT:
                return self._next_control(first, flags, length)
            at += _HEAD.size
            self._at = at
            self._begin_data(first, flags, length)
            if not length:
                return Data(first, b"", self._fin)
        piece = data[at : at + self._left]
        if not piece:
            return None
        self._at += len(piece)
        self._left -= len(piece)
        return Data(self._stream, piece, self._fin and not self._left)

    def _next_control(self, first: int, flags: int, length: int) -> Control | None:
        kind, begin = _check_control(first, length), self._at + _HEAD.size
        end = begin + length
        if len(self._data) < end:
            return None
        self._at = end
        return self._control(kind, flags, self._data[begin:end])

    def _begin_data(self, stream: int, flags: int, length: int) -> None:
        if not stream:
            raise SpdyError("stream id is zero")
        self._stream, self._left, self._fin = stream, length, bool(flags & FIN)

    def _control(self, kind: int, flags: int, payload: bytes) -> Control:
        fin = bool(flags & FIN)
        if kind == SETTINGS:
            if len(payload) < 4 or int.from_bytes(payload[:4], "big") * 8 != len(payload) - 4:
                raise SpdyError("invalid control frame")
            return Control(kind, 0, False, {})
        if kind in _SIZES:
            if len(payload) != _SIZES[kind]:
                raise SpdyError("invalid control frame")
            stream = int.from_bytes(payload[:4], "big")
            return Control(kind, stream, False, {}, int.from_bytes(payload[4:8], "big"))
        skip = 10 if kind == SYN_STREAM else 4
        if len(payload) < skip:
            raise SpdyError("invalid control frame")
        stream = int.from_bytes(payload[:4], "big") & _STREAM_MASK
        if not stream:
            raise SpdyError("stream id is zero")
        return Control(kind, stream, fin, self._headers(payload[skip:]))

    def _headers(self, block: bytes) -> HeaderMap:
        try:
            plain = self._inflate.decompress(block, MAX_HEADER_BLOCK)
        except zlib.error as error:
            raise SpdyError(f"corrupt headers: {error}") from None
        if self._inflate.unconsumed_tail:
            raise SpdyError("headers are too large")
        return parse_headers(plain)


def _check_control(first: int, length: int) -> int:
    version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
    if version != VERSION:
        raise SpdyError(f"unsupported version {version}")
    if kind not in _KNOWN:
        raise SpdyError(f"unknown frame type {kind}")
    if length > MAX_CONTROL:
        raise SpdyError("control frame is too large")
    return kind


def parse_headers(plain: bytes) -> HeaderMap:
    """A decompressed block of headers. Raises SpdyError."""
    count = int.from_bytes(plain[:4], "big")
    if len(plain) < 4 or count > _MAX_HEADERS:
        raise SpdyError("invalid headers")
    left = _MAX_HEADERS  # values
    at, headers = 4, HeaderMap()
    for _ in range(count):
        name, at = _string(plain, at)
        value, at = _string(plain, at)
        values = value.split("\0", left)
        left -= len(values)
        if left < 0:
            raise SpdyError("too many headers")
        headers.setdefault(name.lower(), []).extend(values)
    return headers


def _string(plain: bytes, at: int) -> tuple[str, int]:
    end = at + 4 + int.from_bytes(plain[at : at + 4], "big")
    if at + 4 > len(plain) or end > len(plain):
        raise SpdyError("invalid headers")
    return plain[at + 4 : end].decode("utf-8", "replace"), end


class FrameWriter:
    """Makes bytes of frames."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zdict=DICTIONARY)

    def syn_stream(self, stream: int, headers: HeaderMap, *, fin: bool = False) -> bytes:
        """Open a stream."""
        block = self._compress(headers)
        return _control_head(SYN_STREAM, FIN if fin else 0, 10 + len(block)) + _word(stream) + bytes(6) + block

    def syn_reply(self, stream: int, headers: HeaderMap, *, fin: bool = False) -> bytes:
        """Accept a stream."""
        block = self._compress(headers)
        return _control_head(SYN_REPLY, FIN if fin else 0, 4 + len(block)) + _word(stream) + block

    @staticmethod
    def data(stream: int, payload: bytes, *, fin: bool = False) -> bytes:
        """Data, in frames of a size that lets streams take turns."""
        if len(payload) <= MAX_DATA:
            return _word(stream) + _word((FIN << 24 if fin else 0) | len(payload)) + payload
        pieces = [payload[at : at + MAX_DATA] for at in range(0, len(payload), MAX_DATA)]
        frames = [_word(stream) + _word(len(piece)) + piece for piece in pieces[:-1]]
        return b"".join(frames) + FrameWriter.data(stream, pieces[-1], fin=fin)

    @staticmethod
    def rst_stream(stream: int, status: int) -> bytes:
        """End a stream at once."""
        return _control_head(RST_STREAM, 0, 8) + _word(stream) + _word(status)

    @staticmethod
    def ping(number: int) -> bytes:
        """Ask for, or give, a sign of life."""
        return _control_head(PING, 0, 4) + _word(number)

    @staticmethod
    def goaway(last: int, status: int = 0) -> bytes:
        """Announce the end of the connection."""
        return _control_head(GOAWAY, 0, 8) + _word(last) + _word(status)

    def _compress(self, headers: HeaderMap) -> bytes:
        plain = _word(len(headers)) + b"".join(
            _text(name.lower()) + _text("\0".join(values)) for name, values in headers.items()
        )
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def _control_head(kind: int, flags: int, length: int) -> bytes:
    return _word(_CONTROL_BIT | VERSION << 16 | kind) + _word(flags << 24 | length)


def _word(number: int) -> bytes:
    return number.to_bytes(4, "big")


def _text(text: str) -> bytes:
    data = text.encode()
    return _word(len(data)) + data
