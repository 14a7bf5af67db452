"""The frames of HTTP/2 (RFC 9113, section 4 and 6): their numbers, and how those the server sends are made.

Pure functions of bytes. Reading frames is in `frame_reader.py`.
"""

from __future__ import annotations

import struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_SIZE: Final = 16384  # the largest payload we take, and the largest every client must take
HEADER: Final = struct.Struct(">HBBBI")  # length in two pieces, type, flags, stream
DEFAULT_WINDOW: Final = 65535
MAX_WINDOW: Final = (1 << 31) - 1

# Types
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

# Flags
ACK: Final = 1
END_STREAM: Final = 1
END_HEADERS: Final = 4
PADDED: Final = 8
WITH_PRIORITY: Final = 32

# Errors
NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
INTERNAL_ERROR: Final = 2
FLOW_CONTROL_ERROR: Final = 3
STREAM_CLOSED: Final = 5
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9
ENHANCE_YOUR_CALM: Final = 11

ERROR_NAMES: Final = {
    NO_ERROR: "NO_ERROR",
    PROTOCOL_ERROR: "PROTOCOL_ERROR",
    INTERNAL_ERROR: "INTERNAL_ERROR",
    FLOW_CONTROL_ERROR: "FLOW_CONTROL_ERROR",
    STREAM_CLOSED: "STREAM_CLOSED",
    FRAME_SIZE_ERROR: "FRAME_SIZE_ERROR",
    REFUSED_STREAM: "REFUSED_STREAM",
    CANCEL: "CANCEL",
    COMPRESSION_ERROR: "COMPRESSION_ERROR",
    ENHANCE_YOUR_CALM: "ENHANCE_YOUR_CALM",
}

# Settings
HEADER_TABLE_SIZE: Final = 1
ENABLE_PUSH: Final = 2
MAX_CONCURRENT_STREAMS: Final = 3
INITIAL_WINDOW_SIZE: Final = 4
MAX_FRAME_SIZE: Final = 5
MAX_HEADER_LIST_SIZE: Final = 6

SETTINGS_ACK: Final = b"\0\0\0\4\1\0\0\0\0"

_header = HEADER.pack
_setting = struct.Struct(">HI").pack


class ConnectionFailure(Exception):
    """What the client did ends the connection, with this code in a GOAWAY."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class StreamFailure(Exception):
    """What the client did ends the stream, with this code in a RST_STREAM."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def check_greeting(kind: int, flags: int) -> None:
    """Of the first frame of either side. Raises ConnectionFailure."""
    if kind != SETTINGS or flags & ACK:
        raise ConnectionFailure(PROTOCOL_ERROR, "settings come first")


def check_continued(kind: int) -> None:
    """Of a frame after a header block that has not ended. Raises ConnectionFailure."""
    if kind != CONTINUATION:
        raise ConnectionFailure(PROTOCOL_ERROR, "a header block must go on")


def header(length: int, kind: int, flags: int, stream: int) -> bytes:
    """The nine bytes before a payload."""
    return _header(length >> 8, length & 255, kind, flags, stream)


def headers(stream: int, block: bytes, flags: int = 0) -> bytes:
    """A header block, in a HEADERS frame and as many CONTINUATIONs as it takes."""
    if len(block) <= FRAME_SIZE:
        return _header(len(block) >> 8, len(block) & 255, HEADERS, flags | END_HEADERS, stream) + block
    pieces, kind = [], HEADERS
    for at in range(0, len(block), FRAME_SIZE):
        piece = block[at : at + FRAME_SIZE]
        last = END_HEADERS if at + FRAME_SIZE >= len(block) else 0
        pieces.append(header(len(piece), kind, (flags if kind == HEADERS else 0) | last, stream) + piece)
        kind = CONTINUATION
    return b"".join(pieces)


def settings(values: list[tuple[int, int]]) -> bytes:
    return header(6 * len(values), SETTINGS, 0, 0) + b"".join(_setting(*pair) for pair in values)


def rst_stream(stream: int, code: int) -> bytes:
    return header(4, RST_STREAM, 0, stream) + code.to_bytes(4, "big")


def goaway(last: int, code: int) -> bytes:
    return header(8, GOAWAY, 0, 0) + last.to_bytes(4, "big") + code.to_bytes(4, "big")


def window_update(stream: int, increment: int) -> bytes:
    return header(4, WINDOW_UPDATE, 0, stream) + increment.to_bytes(4, "big")


def ping_ack(payload: bytes) -> bytes:
    return header(8, PING, ACK, 0) + payload
