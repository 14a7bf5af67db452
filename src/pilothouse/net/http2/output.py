"""The way out of a connection: frames of all streams, in turns, within the windows of the other side.

    Stream.write -> fits every window: a DATA frame at once
                 -> does not: the stream keeps it and queues here; `pump` serves those who queue one frame each in turn

What is written within one turn of the loop leaves in one piece. Data is only taken from streams while the transport
takes more, so what a client does not read stays with the streams, of which each holds little.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frames import ConnectionFailure

_FRAMES_A_TURN: Final = 64
_PIECE: Final = 60 * 1024  # as in net/writing.py: larger ones are slower to encrypt


class Sender(Protocol):
    """A stream that has something to send."""

    def send_frame(self) -> bool:
        """Send what fits into one frame; whether there is more that may go."""


class Output:
    """What one connection sends."""

    __slots__ = (
        "_held",
        "_loop",
        "_pieces",
        "_pumping",
        "_queue",
        "_scheduled",
        "_size",
        "_transport",
        "initial_window",
        "kept",
        "paused",
        "useful",
        "window",
    )

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0
        self._held = False
        self._scheduled = False
        self._pumping = False
        self._queue: dict[Sender, None] = {}
        self.paused = False  # the transport takes no more
        self.window = frames.DEFAULT_WINDOW
        self.initial_window = frames.DEFAULT_WINDOW
        self.kept = 0  # bytes that streams keep because they may not be sent yet
        self.useful = 0  # frames of data that were worth their while

    # Frames

    def write(self, data: bytes) -> None:
        """Send with what else leaves in this turn."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _PIECE:
            self.flush()
        elif not (self._held or self._scheduled):
            self._scheduled = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        self.flush()

    def hold(self) -> None:
        """Collect until `release`."""
        self._held = True

    def release(self) -> None:
        self._held = False
        self.flush()

    def flush(self) -> None:
        """Hand everything to the transport."""
        if self._pieces:
            data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._transport.write(data)

    # Data that had to wait

    def queue(self, stream: Sender) -> None:
        """The stream has something it may send as far as its own window goes."""
        self._queue[stream] = None
        if not self.paused and self.window > 0:
            self.pump()

    def leave(self, stream: Sender) -> None:
        """The stream has nothing any more."""
        self._queue.pop(stream, None)

    def pump(self) -> None:
        """Send what those who queue have, as far as windows and transport go."""
        if self._pumping:  # a stream that could send has more at once
            return
        self._pumping = True
        queue, left = self._queue, _FRAMES_A_TURN
        try:
            while queue and self.window > 0 and not self.paused:
                if not left:
                    self._loop.call_soon(self.pump)
                    break
                left -= 1
                stream = next(iter(queue))
                del queue[stream]
                if stream.send_frame():
                    queue[stream] = None
        finally:
            self._pumping = False

    def enlarge(self, increment: int) -> None:
        """The client takes more, on all streams together."""
        if not increment:
            raise ConnectionFailure(frames.PROTOCOL_ERROR, "window enlarged by nothing")
        self.window += increment
        if self.window > frames.MAX_WINDOW:
            raise ConnectionFailure(frames.FLOW_CONTROL_ERROR, "window too large")
        self.pump()

    def resume(self) -> None:
        """The transport takes more again."""
        self.paused = False
        self.pump()
