"""One side of a SPDY connection: opens streams, takes those of the other side, answers pings.

A stream is read with ``read`` until it gives nothing, written with ``write`` and ``drain``, and ended with ``close``
(this side has no more to say) or ``reset``. While a stream holds more than ``HIGH_WATER`` unread bytes, the connection
is not read: whoever uses a session reads all its streams.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

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
_REPLY_SECONDS: Final = 30.0


class StreamReset(ConnectionError):
    """The other side gave up the stream, or the connection has gone."""


class SpdyStream:
    """One stream."""

    __slots__ = ("_ended", "_error", "_pieces", "_session", "_size", "_waiter", "closed", "headers", "id", "replied")

    def __init__(self, session: SpdySession, number: int, headers: HeaderMap) -> None:
        self._session = session
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self.id = number
        self.headers = headers
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
        self._size -= len(piece)
        self._session.note_read(self)
        return piece

    async def read_available(self) -> list[bytes]:
        """All pieces that have come; none at the end. Raises StreamReset."""
        await self._wait()
        pieces, self._pieces = list(self._pieces), deque()
        self._size = 0
        self._session.note_read(self)
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
        """Everything up to the end, but no more than ``limit`` bytes of it."""
        data = b""
        while piece := await self.read():
            data = (data + piece)[:limit]
        return data

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
        self.end(StreamReset("stream reset"))
        self._session.note_closed(self)

    # For the session

    @property
    def is_congested(self) -> bool:
        return self._size > HIGH_WATER

    @property
    def is_over(self) -> bool:
        """Whether both sides have ended it."""
        return self.closed and self._ended

    def feed(self, data: bytes) -> None:
        if data and not self._ended:
            self._pieces.append(data)
            self._size += len(data)
            self._wake()

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
        self._paused = False
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

    def note_read(self, stream: SpdyStream) -> None:
        if self._paused and not any(each.is_congested for each in self._streams.values()):
            self._paused = False
            if not self.transport.is_closing():
                self.transport.resume_reading()

    def note_closed(self, stream: SpdyStream) -> None:
        if stream.is_over:
            self._streams.pop(stream.id, None)
            self.note_read(stream)

    # Callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._gate = WriteGate(self.transport)
        leftover, self._leftover = self._leftover, b""
        if leftover:
            self.data_received(leftover)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                if isinstance(frame, Data):
                    self._receive(frame)
                else:
                    self._control(frame)
        except SpdyError:
            self.send(FrameWriter.goaway(self._last, 1))
            self.transport.close()
            return
        if not self._paused and any(stream.is_congested for stream in self._streams.values()):
            self._paused = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._gate.pause()

    def resume_writing(self) -> None:
        self._gate.open()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
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
        stream.feed(frame.payload)
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
            stream = self._streams.pop(frame.stream, None)
            if stream is not None:
                stream.closed = True
                stream.end(StreamReset("stream reset"))
                self.note_read(stream)
        elif frame.type == PING:
            if frame.stream % 2 != self._next % 2:  # theirs; ours come back as answers
                self.send(FrameWriter.ping(frame.stream))
        elif frame.type == GOAWAY and not self._streams:
            self.transport.close()

    def _accept(self, frame: Control) -> None:
        number = frame.stream
        if number % 2 == self._next % 2 or number <= self._last:
            self.send(FrameWriter.rst_stream(number, INVALID_STREAM))
            return
        self._last = number
        if self._on_stream is None or len(self._streams) >= MAX_STREAMS:
            self.send(FrameWriter.rst_stream(number, REFUSED_STREAM))
            return
        stream = self._streams[number] = SpdyStream(self, number, frame.headers)
        self.send(self._writer.syn_reply(number, {}))
        if frame.fin:
            stream.end()
        self._on_stream(stream)
