"""Watches over WebSockets: one event a message, for clients such as browsers that cannot read a stream of lines.

JSON travels in text messages, protobuf in binary ones without the length that frames it elsewhere. What the client
sends is ignored, except that its close ends the watch. The handshake is judged after the watch is open: a watch that
cannot be had is refused with a Status as ever, a bad handshake in the words of Go's x/net/websocket. As there, an
Origin is required, but may be any URL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from pilothouse.endpoints.negotiation import PROTOBUF
from pilothouse.endpoints.request import APIRequest
from pilothouse.net.framing import Framing
from pilothouse.net.messages import Response
from pilothouse.net.websocket import TEXT, BadHandshake, WebSocket, frame_binary, read_handshake
from pilothouse.storage.cacher import Watcher

_LENGTH_PREFIX: Final = 4
Stream = Callable[[WebSocket], Awaitable[None]]


def message_framing(format: str) -> Framing:
    """What makes a message of an encoded event."""
    return _BARE_BINARY if format == PROTOBUF else TEXT


def _binary_message(event: bytes) -> bytes:
    return frame_binary(event[_LENGTH_PREFIX:])


_BARE_BINARY: Final = Framing("websocket binary without length", _binary_message)


def switch_to_websocket(request: APIRequest, watcher: Watcher, stream: Stream) -> Response:
    """Answer an open watch by a WebSocket that ``stream`` writes to; a bad handshake ends the watch."""
    try:
        handshake = read_handshake(request)
        _check_origin(request)
        headers = handshake.headers()
    except BadHandshake as bad:
        watcher.stop()
        return Response(bad.status, bad.text.encode(), b"", list(bad.headers), close=True)

    def upgrade(_: asyncio.Transport, leftover: bytes) -> WebSocket:
        return WebSocket(leftover, stream, watcher.stop)

    return Response(101, b"", b"", headers, upgrade=upgrade)


def _check_origin(request: APIRequest) -> None:
    from pilothouse.cel.library.urls import UrlError, parse_request_uri

    try:
        parse_request_uri(request.headers.get(b"origin", b"").decode("utf-8", "surrogateescape"))
    except UrlError:
        raise BadHandshake(403) from None
