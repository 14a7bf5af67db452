"""A log over a WebSocket, for clients such as browsers that cannot read a stream of bytes.

An empty message comes first, so that the client knows that the stream has begun; then the log as it arrives, in binary
messages, or in base64 where the client asked for that. What the client sends is ignored; its close ends the stream.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.client import Reply
from pilothouse.net.dialing import OutgoingError
from pilothouse.net.messages import Response
from pilothouse.net.websocket import BadHandshake, Handshake, WebSocket, frame_binary, frame_text, read_handshake

_BINARY: Final = b"binary.k8s.io"
_BASE64: Final = b"base64.binary.k8s.io"
_PIECE: Final = 2048
Frame = Callable[[bytes], bytes]


async def stream_log(request: APIRequest, reply: Reply) -> Response:
    """Switch to a WebSocket that carries the log; a bad handshake is refused as Go's x/net/websocket does."""
    try:
        handshake = read_handshake(request)
        protocol = _choose(handshake)
        headers = Handshake(handshake.accept, (protocol,) if protocol else ()).headers()
    except BadHandshake as bad:
        await reply.abort()
        return Response(bad.status, bad.text.encode(), b"", list(bad.headers), close=True)
    frame = _frame_base64 if protocol == _BASE64 else frame_binary

    async def serve(socket: WebSocket) -> None:
        socket.write_frames(frame(b""))
        try:
            async for piece in reply.pieces():
                for start in range(0, len(piece), _PIECE):
                    socket.write_frames(frame(piece[start : start + _PIECE]))
                await socket.drain()
        except OutgoingError:
            return  # the kubelet broke off: there is no more of the log, and the close says so
        finally:
            await reply.close()

    def upgrade(_: asyncio.Transport, leftover: bytes) -> WebSocket:
        return WebSocket(leftover, serve, reply.drop)

    return Response(101, b"", b"", headers, upgrade=upgrade)


def _choose(handshake: Handshake) -> bytes:
    """The first protocol that the client asked for and that is known; none where it asked for none."""
    if not handshake.protocols:
        return b""
    for protocol in handshake.protocols:
        if protocol in (_BINARY, _BASE64):
            return protocol
    raise BadHandshake(403)


def _frame_base64(piece: bytes) -> bytes:
    return frame_text(base64.b64encode(piece))
