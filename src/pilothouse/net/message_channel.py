"""Whole messages over a stream socket between two processes of ours, in order.

    4 bytes length, little-endian ─ body: one value in the form of ``marshal``

``marshal`` is the fastest way that Python has to turn tuples of text, bytes and numbers into bytes and back. It is not
to be trusted with what strangers send; both ends here are one program of one version, and the socket has no name that
a stranger could connect to. What is sent within one turn of the loop goes out with one system call.
"""

from __future__ import annotations

import asyncio
import marshal
import socket
from collections.abc import Callable
from typing import Any, Final, cast

_HEAD: Final = 4
_SOCKET_BUFFER: Final = 1 << 20

Receive = Callable[[Any], None]
Lost = Callable[[], None]


def encode_message(message: Any) -> bytes:
    """A message as it travels; to be sent to several peers, it is encoded once."""
    body = marshal.dumps(message)
    return len(body).to_bytes(_HEAD, "little") + body


class MessageChannel(asyncio.Protocol):
    """One end. ``receive`` gets every message on the loop; ``lost`` is told once when the other end has gone.

    Nothing is received before ``start``. ``receive`` must not raise.
    """

    def __init__(self, receive: Receive, lost: Lost) -> None:
        self._receive, self._lost = receive, lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._arrived = bytearray()
        self._needed = _HEAD
        self._gathered: list[bytes] = []
        self._closed = False

    async def start(self, sock: socket.socket) -> None:
        """Speak through a connected socket, which belongs to the channel from here on."""
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
        await self._loop.create_unix_connection(lambda: self, sock=sock)

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._transport is not None and not self._closed

    @property
    def backlog(self) -> int:
        """Bytes that the other end has yet to take."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def send(self, message: Any) -> None:
        """Send a message; into the void if the other end has gone."""
        self.send_encoded(encode_message(message))

    def send_encoded(self, message: bytes) -> None:
        """Send what ``encode_message`` made."""
        if not self.is_open:
            return
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(message)

    def close(self) -> None:
        """Send what was gathered, then end the connection."""
        if self.is_open:
            self._flush()
        self._closed = True
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End the connection at once."""
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered and self.is_open and self._transport is not None:
            self._transport.write(b"".join(gathered))

    # Of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        arrived = self._arrived
        arrived += data
        if len(arrived) < self._needed:
            return
        position, end = 0, len(arrived)
        view = memoryview(arrived)
        messages: list[Any] = []
        while True:
            self._needed = _HEAD
            if end - position < _HEAD:
                break
            length = _HEAD + int.from_bytes(view[position : position + _HEAD], "little")
            if end - position < length:
                self._needed = length
                break
            messages.append(marshal.loads(view[position + _HEAD : position + length]))  # noqa: S302 (own processes)
            position += length
        view.release()
        del arrived[:position]
        for message in messages:
            self._receive(message)

    def connection_lost(self, error: Exception | None) -> None:
        self._closed = True
        self._transport = None
        self._lost()
