"""Header blocks from the frames that carry them: a HEADERS and as many CONTINUATIONs as it takes, nothing in between.

A block is bounded while it grows, whatever it would unfold to.
"""

from __future__ import annotations

from typing import NamedTuple

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frames import ConnectionFailure


class Block(NamedTuple):
    """A complete block: its stream, whether the request ends with it, and the stream it says it depends on."""

    stream: int
    ended: bool
    data: bytes
    depends: int


class HeaderBlocks:
    """The block that is being received, if one is."""

    __slots__ = ("_first", "_limit", "_pieces", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._first: Block | None = None
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def unfinished(self) -> bool:
        """Only a continuation may come now."""
        return self._first is not None

    @property
    def size(self) -> int:
        """How long it is so far."""
        return self._size if self._first is not None else 0

    def begin(self, flags: int, stream: int, payload: bytes) -> Block | None:
        """Take a HEADERS frame; the block, if that was all of it."""
        if not stream & 1:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "no stream of a client")
        if flags & frames.PADDED:
            payload = unpad(payload)
        depends = 0
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise ConnectionFailure(frames.FRAME_SIZE_ERROR, "no room for a priority")
            depends = int.from_bytes(payload[:4], "big") & frames.MAX_WINDOW
            payload = payload[5:]
        block = Block(stream, bool(flags & frames.END_STREAM), payload, depends)
        if flags & frames.END_HEADERS:
            return block
        self._first, self._pieces, self._size = block, [payload], len(payload)
        return None

    def go_on(self, flags: int, stream: int, payload: bytes) -> Block | None:
        """Take a CONTINUATION frame; the block, if that was the end of it."""
        first = self._first
        if first is None or first.stream != stream:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "nothing to continue")
        self._pieces.append(payload)
        self._size += len(payload)
        if self._size > self._limit:
            raise ConnectionFailure(frames.ENHANCE_YOUR_CALM, "header block too large")
        if not flags & frames.END_HEADERS:
            return None
        whole = first._replace(data=b"".join(self._pieces))
        self._first, self._pieces = None, []
        return whole


def unpad(payload: bytes) -> bytes:
    """What is left without the padding."""
    if not payload or payload[0] >= len(payload):
        raise ConnectionFailure(frames.PROTOCOL_ERROR, "more padding than payload")
    return payload[1 : len(payload) - payload[0]]
