"""What the two ends of a connection tell each other once: ours from the options, the other's from its frames."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frames import ConnectionFailure

_MAX_SETTINGS = 100
_pairs = struct.Struct(">HI").iter_unpack


@dataclass(frozen=True, slots=True)
class Http2Options:
    """What a server allows and does."""

    max_streams: int = 100  # on one connection
    goaway_chance: float = 0.0  # that a request is the last of its connection, so that clients spread over servers


class PeerSettings:
    """What the other side has told. We send nothing that depends on the settings it leaves out."""

    __slots__ = ("acknowledged", "max_streams")

    def __init__(self, max_streams: int = 0) -> None:
        self.acknowledged = False  # it has seen ours
        self.max_streams = max_streams  # how many requests a server takes at once

    def acknowledge(self, payload: bytes) -> None:
        if payload:
            raise ConnectionFailure(frames.FRAME_SIZE_ERROR, "an acknowledgement says nothing")
        if self.acknowledged:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "nothing to acknowledge")
        self.acknowledged = True

    def update(self, payload: bytes, window: int) -> int:
        """Check settings; by how much they enlarge the initial window of streams."""
        if len(payload) % 6:
            raise ConnectionFailure(frames.FRAME_SIZE_ERROR, "settings of a wrong length")
        values = dict(_pairs(payload))
        if len(payload) // 6 > min(_MAX_SETTINGS, len(values)):
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "too many settings, or the same again")
        if values.get(frames.ENABLE_PUSH, 0) > 1:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "push must be 0 or 1")
        if not frames.FRAME_SIZE <= values.get(frames.MAX_FRAME_SIZE, frames.FRAME_SIZE) < 1 << 24:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "frame size out of range")
        wanted: int = values.get(frames.INITIAL_WINDOW_SIZE, window)
        if wanted > frames.MAX_WINDOW:
            raise ConnectionFailure(frames.FLOW_CONTROL_ERROR, "window too large")
        self.max_streams = values.get(frames.MAX_CONCURRENT_STREAMS, self.max_streams)
        return wanted - window
