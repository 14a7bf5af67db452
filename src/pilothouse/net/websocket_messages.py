"""WebSockets on which both sides talk: messages in pieces, and tunnels of bytes.

``MessageSocket`` hands messages to whoever serves it, piece by piece and at their pace. ``TunnelSocket`` ties a
WebSocket to another connection: what comes in binary messages goes out there as bytes, and the other way round.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from wsproto.events import BytesMessage, TextMessage

from pilothouse.net.client import Reply
from pilothouse.net.pacing import Flow, pace_of
from pilothouse.net.websocket import WebSocket, frame_binary

HIGH_WATER: Final = 256 * 1024
_COST: Final = 128
"""Bytes that a piece takes beside its data: one of a single byte comes in a frame of seven."""


class Piece(NamedTuple):
    """A part of a message; ``first`` begins one."""

    data: bytes
    first: bool


class MessageSocket(WebSocket):
    """A WebSocket whose messages are read with ``receive``."""

    def __init__(
        self, leftover: bytes, serve: Callable[[MessageSocket], Awaitable[None]], ended: Callable[[], object]
    ) -> None:
        super().__init__(leftover, serve, ended)  # type: ignore[arg-type]
        self._pieces: deque[Piece] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._begins = True

    async def receive(self) -> Piece | None:
        """The next piece of a message; None once the client has gone."""
        if not await self._arrival():
            return None
        piece = self._pieces.popleft()
        self._note_taken(len(piece.data) + _COST)
        return piece

    async def receive_available(self) -> list[Piece]:
        """All pieces that have come; none once the client has gone."""
        if not await self._arrival():
            return []
        pieces = list(self._pieces)
        self._pieces.clear()
        self._note_taken(self._size)
        return pieces

    async def _arrival(self) -> bool:
        """Wait for a piece; False if there will be none."""
        while not self._pieces:
            if self._closing:
                return False
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return True

    def _note_taken(self, size: int) -> None:
        self._size -= size
        if self._input.paused and self._size < HIGH_WATER and not self.is_closing():
            self.resume_reading()

    async def send(self, *pieces: bytes) -> None:
        """One binary message made of pieces, at the pace of the client. Raises ClientDisconnected."""
        self.write_frames(frame_binary(*pieces))
        await self.drain()

    def _skip(self, message: TextMessage | BytesMessage) -> None:
        super()._skip(message)
        data = message.data.encode() if isinstance(message, TextMessage) else bytes(message.data)
        if data:
            self._pieces.append(Piece(data, self._begins))
            self._size += len(data) + _COST
            self._begins = False
        if message.message_finished:
            self._begins = True
        if self._size >= HIGH_WATER and not self._input.paused and not self.is_closing():
            self.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class TunnelSocket(WebSocket):
    """A WebSocket that carries the bytes of the connection that a 101 was got on."""

    def __init__(self, leftover: bytes, reply: Reply, rate: int = 0) -> None:
        self._reply = reply
        self._rate = rate
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._far: asyncio.Transport | None = None
        self._outward: Flow | None = None
        self._inward: Flow | None = None
        super().__init__(leftover, self._wait, self._hang_up)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        far = _FarEnd(self)
        self._far, early = self._reply.take_over(far)
        self._outward = Flow(self, self._send_far, pace_of(self._rate))
        self._inward = Flow(self._far, self._send_near, pace_of(self._rate))
        super().connection_made(transport)
        if early:
            far.data_received(early)

    def end(self) -> None:
        """The other connection has ended."""
        if not self._over.done():
            self._over.set_result(None)

    async def _wait(self, _: WebSocket) -> None:
        await self._over

    def _hang_up(self) -> None:
        for flow in (self._outward, self._inward):
            if flow is not None:
                flow.end()
        if self._far is not None:
            self._far.close()

    def _skip(self, message: TextMessage | BytesMessage) -> None:
        if isinstance(message, BytesMessage) and self._outward is not None:
            self._outward.feed(bytes(message.data))

    def _send_far(self, data: bytes) -> None:
        if self._far is not None and not self._far.is_closing():
            self._far.write(data)

    def _send_near(self, data: bytes) -> None:
        self.write_frames(frame_binary(data))

    def receive_far(self, data: bytes) -> None:
        """Bytes of the other connection."""
        if self._inward is not None:
            self._inward.feed(data)

    def pause_far(self) -> None:
        """The other connection is congested."""
        if self._outward is not None:
            self._outward.congest()

    def resume_far(self) -> None:
        """The other connection takes bytes again."""
        if self._outward is not None:
            self._outward.clear()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._inward is not None:
            self._inward.congest()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._inward is not None:
            self._inward.clear()


class _FarEnd(asyncio.Protocol):
    """The connection behind a tunnel, as the transport sees it."""

    def __init__(self, socket: TunnelSocket) -> None:
        self._socket = socket

    def data_received(self, data: bytes) -> None:
        self._socket.receive_far(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._socket.pause_far()

    def resume_writing(self) -> None:
        self._socket.resume_far()

    def connection_lost(self, exc: Exception | None) -> None:
        self._socket.end()
