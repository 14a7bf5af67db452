"""One side of a SPDY connection: opens streams, takes those of the other side, answers pings.

A stream is read with ``read`` until it gives nothing, written with ``write`` and ``drain``, and ended with ``close``
(this side has no more to say) or ``reset``; what came before the other side's reset is read first. While streams
together hold more than ``HIGH_WATER`` unread bytes, the connection is not read: whoever uses a session reads all its
streams.

What the other side can make this one do or hold is bounded: frames are taken in turns with what others say
(``frame_turns.py``), pieces count with what they take beside their bytes, and so do the headers of streams. Who asks
for answers (pings, streams that are refused) and reads none of them is hung up on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from pilothouse.net.frame_turns import FrameTurns
from pilothouse.net.messages import Upgraded
from pilothouse.net.request_body import ClientDisconnected
from pilothouse.net.spdy.frames import (
    CANCEL,
    GOAWAY,
    INVALID_STREAM,
    PING,
    REFUSED_STREAM,
    RST_STREAM,
    SYN_REPLY,
    SYN_STREAM,
    Control,
    Data,
    FrameReader,
    FrameWriter,
    HeaderMap,
    SpdyError,
)
from pilothouse.net.writing import WriteGate

HIGH_WATER: Final = 256 * 1024
MAX_STREAMS: Final = 1000
MOST_HEADERS: Final = 256 * 1024
"""What the headers of all streams together may take."""
_COST: Final = 128
"""Bytes that a piece, or a stream, takes beside its data: one of a single byte comes in a frame of nine."""
_MOST_UNHEARD: Final = 1000
"""Answers that may wait for the other side to read on."""
_REPLY_SECONDS: Final = 30.0


class StreamReset(ConnectionError):
    """The other side gave up the stream, or the connection has gone."""


class SpdyStream:
    """One stream."""

    __slots__ = (
        "_ended",
        "_error",
        "_pieces",
        "_session",
        "_size",
        "_waiter",
        "closed",
        "headers",
        "id",
        "replied",
        "weight",
    )

    def __init__(self, session: SpdySession, number: int, headers: HeaderMap) -> None:
        self._session = session
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self.id = number
        self.headers = headers
        self.weight = 0
        """What its headers take, of those that the other side has opened."""
        self.closed = False
        """Whether this side has ended the stream."""
        self.replied: asyncio.Future[None] | None = None

    def header(self, name: str) -> str:
        """The first value of a header of the stream's opening."""
        return self.headers.get(name, [""])[0]

    async def read(self) -> bytes:
        """The next piece, as it was sent if it is short; nothing at the end. Raises StreamReset."""
        await self._wait()
        if not self._pieces:
            return b""
        piece = self._pieces.popleft()
        self._size -= len(piece) + _COST
        self._session.note_read(len(piece) + _COST)
        return piece

    async def read_available(self) -> list[bytes]:
        """All pieces that have come; none at the end. Raises StreamReset."""
        await self._wait()
        pieces = list(self._pieces)
        self.drop()
        return pieces

    async def _wait(self) -> None:
        """Until there is something to read, or never will be."""
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._ended:
                return
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def read_all(self, limit: int) -> bytes:
        """Everything up to the end, but no more than ``limit`` bytes of it. Raises StreamReset if nothing came.

        Kubelets end a stream by resetting it, behind what they have said.
        """
        data = bytearray()
        try:
            while pieces := await self.read_available():
                for piece in pieces:
                    data += piece[: limit - len(data)]
        except StreamReset:
            if not data:
                raise
        return bytes(data)

    def write(self, data: bytes) -> None:
        """Send; a no-op once this side has ended the stream."""
        if data and not self.closed:
            self._session.send(FrameWriter.data(self.id, data))

    async def drain(self) -> None:
        """Wait while the other side is slow. Raises StreamReset."""
        await self._session.drain()

    def close(self) -> None:
        """Say that no more will come."""
        if not self.closed:
            self.closed = True
            self._session.send(FrameWriter.data(self.id, b"", fin=True))
            self._session.note_closed(self)

    def reset(self) -> None:
        """Give up."""
        if not (self.closed and self._ended):
            self._session.send(FrameWriter.rst_stream(self.id, CANCEL))
        self.closed = True
        self.drop()
        self.end(StreamReset("stream reset"))
        self._session.note_closed(self)

    def drop(self) -> None:
        """Forget what has come and was not read."""
        size, self._size = self._size, 0
        self._pieces.clear()
        self._session.note_read(size)

    # For the session

    @property
    def is_over(self) -> bool:
        """Whether both sides have ended it."""
        return self.closed and self._ended

    def feed(self, data: bytes) -> int:
        """Keep a piece; what that takes."""
        if not data or self._ended:
            return 0
        self._pieces.append(data)
        self._size += len(data) + _COST
        self._wake()
        return len(data) + _COST

    def end(self, error: Exception | None = None) -> None:
        if not self._ended:
            self._ended = True
            self._error = error
        if self.replied is not None and not self.replied.done():
            self.replied.set_exception(error or StreamReset("stream reset"))
            self.replied.exception()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class SpdySession(Upgraded):
    """A connection. ``on_stream`` hears of streams that the other side opens; without it they are refused."""

    transport: asyncio.Transport
    _gate: WriteGate
    _input: FrameTurns

    def __init__(
        self,
        *,
        is_server: bool,
        leftover: bytes = b"",
        on_stream: Callable[[SpdyStream], object] | None = None,
        on_end: Callable[[], object] | None = None,
    ) -> None:
        self._leftover = leftover
        self._on_stream = on_stream
        self._on_end = on_end
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._next = 2 if is_server else 1
        self._last = 0  # the latest stream of the other side
        self._held = 0  # what has come and was not read
        self._weight = 0  # of all headers
        self._unheard = 0  # answers since the other side stopped reading
        self.lost = False

    # For its user

    async def open(self, headers: dict[str, str]) -> SpdyStream:
        """Open a stream and wait until the other side accepts it. Raises StreamReset and TimeoutError."""
        if self.lost:
            raise StreamReset("connection closed")
        stream = SpdyStream(self, self._next, {name: [value] for name, value in headers.items()})
        self._next += 2
        self._streams[stream.id] = stream
        stream.replied = asyncio.get_running_loop().create_future()
        self.send(self._writer.syn_stream(stream.id, stream.headers))
        async with asyncio.timeout(_REPLY_SECONDS):
            await stream.replied
        return stream

    def ping(self) -> None:
        """Show that this side is alive."""
        self.send(FrameWriter.ping(self._next))

    def send(self, frames: bytes) -> None:
        """For streams: write whole frames."""
        if not self.lost and not self.transport.is_closing():
            self.transport.write(frames)

    async def drain(self) -> None:
        """Wait while the other side is slow."""
        try:
            await self._gate.wait()
        except ClientDisconnected:
            raise StreamReset("connection closed") from None

    def close(self) -> None:
        """End the connection after what is written has been sent."""
        if not self.lost:
            self.send(FrameWriter.goaway(self._last))
            self.transport.close()

    # For its streams

    def note_read(self, size: int) -> None:
        self._held -= size
        if not self.lost and self._input.paused and self._held <= HIGH_WATER:
            self._input.resume()

    def note_closed(self, stream: SpdyStream) -> None:
        if stream.is_over:
            self._forget(stream.id)

    def _forget(self, number: int) -> SpdyStream | None:
        stream = self._streams.pop(number, None)
        if stream is not None:
            self._weight -= stream.weight
        return stream

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._gate = WriteGate(self.transport)
        self._input = FrameTurns(self.transport, self._take_frame)
        leftover, self._leftover = self._leftover, b""
        if leftover:
            self.data_received(leftover)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        self._input.go_on()

    def _take_frame(self) -> bool:
        try:
            frame = self._reader.next_frame()
            if isinstance(frame, Data):
                self._receive(frame)
            elif frame is not None:
                self._control(frame)
        except SpdyError:
            self._input.end()
            self.send(FrameWriter.goaway(self._last, 1))
            if self._gate.paused:
                self.transport.abort()  # whoever reads nothing would be waited for
            else:
                self.transport.close()
            return False
        return frame is not None

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._gate.pause()

    def resume_writing(self) -> None:
        self._unheard = 0
        self._gate.open()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._input.end()
        self._gate.close()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.closed = True
            stream.end(StreamReset("connection closed"))
        if self._on_end is not None:
            self._on_end()

    def drain_server(self) -> None:
        self.close()

    # Frames

    def _receive(self, frame: Data) -> None:
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # of a stream that was given up
        self._held += stream.feed(frame.payload)
        if self._held > HIGH_WATER and not self._input.paused:
            self._input.pause()
        if frame.fin:
            stream.end()
            self.note_closed(stream)

    def _control(self, frame: Control) -> None:
        if frame.type == SYN_STREAM:
            self._accept(frame)
        elif frame.type == SYN_REPLY:
            stream = self._streams.get(frame.stream)
            if stream is not None and stream.replied is not None and not stream.replied.done():
                stream.replied.set_result(None)
            if stream is not None and frame.fin:
                stream.end()
                self.note_closed(stream)
        elif frame.type == RST_STREAM:
            stream = self._forget(frame.stream)
            if stream is not None:
                stream.closed = True
                stream.end(StreamReset("stream reset"))
        elif frame.type == PING:
            if frame.stream % 2 != self._next % 2:  # theirs; ours come back as answers
                self._answer(FrameWriter.ping(frame.stream))
        elif frame.type == GOAWAY and not self._streams:
            self.transport.close()

    def _accept(self, frame: Control) -> None:
        number = frame.stream
        if number % 2 == self._next % 2 or number <= self._last:
            self._answer(FrameWriter.rst_stream(number, INVALID_STREAM))
            return
        self._last = number
        weight = _weight_of(frame.headers)
        if self._on_stream is None or len(self._streams) >= MAX_STREAMS or self._weight + weight > MOST_HEADERS:
            self._answer(FrameWriter.rst_stream(number, REFUSED_STREAM))
            return
        stream = self._streams[number] = SpdyStream(self, number, frame.headers)
        stream.weight = weight
        self._weight += weight
        self._answer(self._writer.syn_reply(number, {}))
        if frame.fin:
            stream.end()
        self._on_stream(stream)

    def _answer(self, frame: bytes) -> None:
        """Send what the other side makes necessary. Raises SpdyError when it has read none of that for too long."""
        if self._gate.paused:
            self._unheard += 1
            if self._unheard > _MOST_UNHEARD:
                raise SpdyError("answers are not read")
        self.send(frame)


def _weight_of(headers: HeaderMap) -> int:
    """What the headers of a stream take."""
    return _COST + sum(len(name) + sum(len(value) + _COST for value in values) for name, values in headers.items())
