"""Finding frames in a stream of bytes.

Sans-IO: `feed` takes bytes in whatever pieces they come, `next_frame` gives the next complete frame or None,
`next_frames` all there are. What is too long, or out of place in its shape alone, is refused before its payload has
arrived.
"""

from __future__ import annotations

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frames import ConnectionFailure
from pilothouse.net.unread_input import UnreadInput

Frame = tuple[int, int, int, bytes]
"""Type, flags, stream and payload."""

_STREAM_BITS = (1 << 31) - 1
_unpack = frames.HEADER.unpack_from

# Types whose payload has one length only.
_LENGTHS = {frames.PRIORITY: 5, frames.RST_STREAM: 4, frames.PING: 8, frames.WINDOW_UPDATE: 4}


class FrameReader(UnreadInput):
    """The unread input of a connection."""

    __slots__ = ("_greeted",)

    def __init__(self, *, greeted: bool = False) -> None:
        """``greeted``: the other side is a server, which has no preface to send."""
        super().__init__()
        self._greeted = greeted

    def clear(self) -> None:
        """Forget all unread input."""
        self._data, self._at = b"", 0

    def next_frame(self) -> Frame | None:
        """The next complete frame; ConnectionFailure when there cannot be one."""
        if not self._greeted and not self._read_preface():
            return None
        data, at = self._data, self._at
        if len(data) - at < 9:
            return None
        high, low, kind, flags, stream = _unpack(data, at)
        length = high << 8 | low
        if length > frames.FRAME_SIZE:
            raise ConnectionFailure(frames.FRAME_SIZE_ERROR, "frame too large")
        if _LENGTHS.get(kind, length) != length:
            raise ConnectionFailure(frames.FRAME_SIZE_ERROR, "frame of a wrong length")
        end = at + 9 + length
        if len(data) < end:
            return None
        self._at = end
        return kind, flags, stream & _STREAM_BITS, data[at + 9 : end]

    def next_frames(self) -> list[Frame]:
        """All complete frames there are, none where there is none; ConnectionFailure when there cannot be a next one.

        For whoever takes them all at once: the answer to a call comes as several short frames together.
        """
        found: list[Frame] = []
        data, at, size = self._data, self._at, len(self._data) if self._greeted else 0
        while size - at >= 9:
            high, low, kind, flags, stream = _unpack(data, at)
            length = high << 8 | low
            end = at + 9 + length
            if end > size or length > frames.FRAME_SIZE or _LENGTHS.get(kind, length) != length:
                break
            found.append((kind, flags, stream & _STREAM_BITS, data[at + 9 : end]))
            at = end
        self._at = at
        if not found and (frame := self.next_frame()) is not None:
            found.append(frame)
        return found

    def _read_preface(self) -> bool:
        known = self._data[: len(frames.PREFACE)]
        if not frames.PREFACE.startswith(known):
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "not HTTP/2")
        if len(known) < len(frames.PREFACE):
            return False
        self._at = len(frames.PREFACE)
        self._greeted = True
        return True
