"""WebSockets whose other side takes nothing: what clients send waits with them, not here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.net.websocket import WebSocket
from pilothouse.net.websocket_messages import HIGH_WATER, MessageSocket, TunnelSocket

READ = 64 * 1024
PATIENCE = 200
"""Turns of the loop after which whoever was going to read on has done so."""


class Near(asyncio.Transport):
    """The client's connection: it always has more to say."""

    reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False

    def write(self, data: Any) -> None: ...

    def close(self) -> None: ...


class Far(Near):
    """A connection that takes nothing."""

    taken = 0

    def write(self, data: Any) -> None:
        self.taken += len(data)


class Reply:
    """The 101 of a kubelet."""

    def __init__(self, far: Far) -> None:
        self.far = far
        self.end: Any = None

    def take_over(self, end: Any) -> tuple[Far, bytes]:
        self.end = end
        return self.far, b""


def frames_of(message: bytes) -> bytes:
    """A piece as it is read from a socket: nothing but such messages, masked with zeros."""
    size = len(message)
    head = bytes((0x82, 0x80 | size)) if size < 126 else b"\x82\xfe" + size.to_bytes(2, "big")
    frame = head + bytes(4) + message
    return frame * (READ // len(frame))


async def flood(socket: WebSocket, near: Near, piece: bytes, most: int) -> int:
    """How many bytes the socket takes of a client that never ends."""
    sent = quiet = 0
    while quiet < PATIENCE and sent < most:
        quiet = 0 if near.reading else quiet + 1
        if near.reading:
            sent += len(piece)
            socket.data_received(piece)
        await asyncio.sleep(0)
    return sent


@pytest.mark.parametrize("message", [b"a" * 2000, b"a"], ids=["long", "of one byte"])
async def test_messages_that_nobody_receives(message: bytes) -> None:
    async def never(_: MessageSocket) -> None:
        await asyncio.Event().wait()

    socket, near = MessageSocket(b"", never, lambda: None), Near()
    socket.connection_made(near)
    assert await flood(socket, near, frames_of(message), 8 * HIGH_WATER) <= HIGH_WATER + 2 * READ
    assert len(socket._pieces) <= HIGH_WATER // 100
    received = 0
    while socket._pieces or not near.reading:
        piece = await socket.receive()
        assert piece is not None
        received += len(piece.data)
        await asyncio.sleep(0)
    assert received > READ // 10
    assert near.reading
    socket.connection_lost(None)


async def test_a_tunnel_into_a_connection_that_takes_nothing() -> None:
    far, near = Far(), Near()
    reply = Reply(far)
    socket = TunnelSocket(b"", reply)  # type: ignore[arg-type]
    socket.connection_made(near)
    piece = frames_of(b"a" * 2000)
    socket.data_received(piece)
    reply.end.pause_writing()
    assert await flood(socket, near, piece, 8 * HIGH_WATER) == 0
    assert far.taken <= READ
    reply.end.resume_writing()
    assert await flood(socket, near, piece, 8 * HIGH_WATER) >= 8 * HIGH_WATER
    socket.connection_lost(None)
