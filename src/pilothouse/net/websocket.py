"""WebSocket, the server's side: the handshake, and a connection on which the server talks and the client listens.

The handshake is judged as Go's x/net/websocket judges it, which is laxer than the RFC (any key will do) and stricter
(one subprotocol at most, since nobody chooses among them). What the client sends is parsed by wsproto piece by piece
and dropped, so a message costs no memory however long it is; pings are answered, a close ends the connection. Frames
are taken in turns with what others say (``frame_turns.py``).

Frames written wait in the transport alone: the writer drains before it makes more. While the client is slow, only its
latest ping is remembered. A close frame is the last thing sent; a client that does not take it is cut off.

Who cannot take more of what the client sends pauses the WebSocket, not its transport: there are frames here that came
in one piece and wait for their turn.
"""

import asyncio
import base64
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, cast

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason, Opcode

from pilothouse.net.frame_turns import FrameTurns
from pilothouse.net.framing import Framing
from pilothouse.net.header_lists import list_tokens
from pilothouse.net.messages import Request, Upgraded
from pilothouse.net.request_body import ClientDisconnected
from pilothouse.net.writing import WriteGate

logger = logging.getLogger(__name__)

MESSAGE_LIMIT: Final = 32 << 20  # x/net: DefaultMaxPayloadBytes
CLOSE_SECONDS: Final = 2.0
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FINAL: Final = 0x80


class BadHandshake(Exception):
    """The request asks for a WebSocket in a way that cannot be granted."""

    def __init__(self, status: int, text: str = "", headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        super().__init__(text)
        self.status, self.text, self.headers = status, text, headers


@dataclass(frozen=True, slots=True)
class Handshake:
    """What the client asked for and how to grant it."""

    accept: bytes
    protocols: tuple[bytes, ...] = field(default=())

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of the 101; BadHandshake when there are subprotocols to choose from."""
        if len(self.protocols) > 1:
            raise BadHandshake(400)
        granted = [
            (b"Upgrade", b"websocket"),
            (b"Connection", b"Upgrade"),
            (b"Sec-WebSocket-Accept", self.accept),
        ]
        return granted + [(b"Sec-WebSocket-Protocol", protocol) for protocol in self.protocols]


def read_handshake(request: Request) -> Handshake:
    """What the handshake asks for; raises BadHandshake. Of repeated headers only the first counts."""
    headers = request.headers
    if request.method != "GET":
        raise BadHandshake(405, "bad method")
    upgrades = b"upgrade" in headers.get(b"connection", b"").lower()
    if headers.get(b"upgrade", b"").lower() != b"websocket" or not upgrades:
        raise BadHandshake(400, "not websocket protocol")
    key = headers.get(b"sec-websocket-key")
    if not key:
        raise BadHandshake(400, "mismatch challenge/response")
    if headers.get(b"sec-websocket-version") != b"13":
        raise BadHandshake(400, "missing or bad WebSocket Version", ((b"Sec-WebSocket-Version", b"13"),))
    asked = headers.get(b"sec-websocket-protocol", b"").strip()
    protocols = tuple(list_tokens([asked])) if asked else ()
    return Handshake(accept_for(key), protocols)


def accept_for(key: bytes) -> bytes:
    """The proof that the server has read the client's key."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def frame_text(payload: bytes) -> bytes:
    """One text message from bytes that are UTF-8 already."""
    return _frame(Opcode.TEXT, payload)


def frame_binary(*pieces: bytes) -> bytes:
    """One binary message made of pieces."""
    return _frame(Opcode.BINARY, *pieces)


TEXT: Final = Framing("websocket text", frame_text)


def _frame(opcode: int, *pieces: bytes) -> bytes:
    # By hand: wsproto makes text messages from str only, and events are bytes that many clients share.
    size = sum(map(len, pieces))
    if size < 126:
        head = bytes((_FINAL | opcode, size))
    elif size < 1 << 16:
        head = b"%c\x7e%b" % (_FINAL | opcode, size.to_bytes(2, "big"))
    else:
        head = b"%c\x7f%b" % (_FINAL | opcode, size.to_bytes(8, "big"))
    return b"".join((head, *pieces))


class WebSocket(Upgraded):
    """One upgraded connection: ``serve`` writes to it until it returns, or until the client goes.

    ``ended`` is called once in any case, even where there was no time for ``serve`` to begin.
    """

    transport: asyncio.Transport
    _gate: WriteGate
    _input: FrameTurns

    def __init__(
        self, leftover: bytes, serve: Callable[["WebSocket"], Awaitable[None]], ended: Callable[[], object]
    ) -> None:
        self._leftover = leftover
        self._serve = serve
        self._ended = ended
        self._parser = Connection(ConnectionType.SERVER)
        self._events: Iterator[Event] = self._parser.events()
        """Of what has arrived, as far as it is parsed."""
        self._task: asyncio.Task[None] | None = None
        self._received = 0  # of the message that is arriving
        self._ping: Ping | None = None  # to be answered once the client reads again
        self._closing = False
        self._cut_off: asyncio.TimerHandle | None = None

    # For the one who serves

    def open_gate(self) -> WriteGate:
        """For writing frames to the transport directly, as `write_frames` does."""
        return self._gate

    def write_frames(self, frames: bytes) -> None:
        """Send whole frames; a no-op once the connection is ending."""
        if not self._closing and not self.transport.is_closing():
            self.transport.write(frames)

    async def drain(self, patience: float | None = None) -> bool:
        """Wait while the client is slow; ClientDisconnected if it has gone. False: slow for longer than `patience`."""
        if self._closing:
            raise ClientDisconnected("client disconnected")
        return await self._gate.wait(patience)

    def close(self, code: int = CloseReason.NORMAL_CLOSURE) -> None:
        """Say why and hang up, at once or, if the client is slow, within `CLOSE_SECONDS`."""
        if self._closing:
            return
        self._closing = True
        self._input.end()
        if not self.transport.is_closing():
            self.transport.write(bytes(self._parser.send(CloseConnection(code=code))))
        self.transport.close()
        self._cut_off = asyncio.get_running_loop().call_later(CLOSE_SECONDS, self.transport.abort)
        if self._task is not None:
            self._task.cancel()

    def is_closing(self) -> bool:
        return self.transport.is_closing()

    def pause_reading(self) -> None:
        """Nothing more of what the client sends is looked at."""
        self._input.pause()

    def resume_reading(self) -> None:
        """What is here is read first, then what comes."""
        self._input.resume()

    # For the server

    def drain_server(self) -> None:
        self.close(CloseReason.GOING_AWAY)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._gate = WriteGate(self.transport)
        self._input = FrameTurns(self.transport, self._take_frame)
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: self._ended())
        leftover, self._leftover = self._leftover, b""
        if leftover:
            self.data_received(leftover)

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            self._parser.receive_data(data)
            self._input.go_on()

    def _take_frame(self) -> bool:
        event = next(self._events, None)
        if event is None:
            self._events = self._parser.events()
            return False
        if isinstance(event, TextMessage | BytesMessage):
            self._skip(event)
        elif isinstance(event, Ping):
            self._answer(event)
        elif isinstance(event, CloseConnection):
            asked = self._parser.state is ConnectionState.REMOTE_CLOSING
            self.close(CloseReason.NORMAL_CLOSURE if asked else event.code)
        return True

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._gate.pause()

    def resume_writing(self) -> None:
        self._gate.open()
        ping, self._ping = self._ping, None
        if ping is not None and not self._closing:
            self._answer(ping)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._input.end()
        self._gate.close()
        if self._cut_off is not None:
            self._cut_off.cancel()
        if self._task is not None:
            self._task.cancel()

    def _skip(self, message: TextMessage | BytesMessage) -> None:
        self._received += len(message.data)
        if self._received > MESSAGE_LIMIT:
            self.close(CloseReason.MESSAGE_TOO_BIG)
        elif message.message_finished:
            self._received = 0

    def _answer(self, ping: Ping) -> None:
        if self._gate.paused:
            self._ping = ping
        else:
            self.transport.write(bytes(self._parser.send(ping.response())))

    async def _run(self) -> None:
        try:
            await self._serve(self)
        except ClientDisconnected:
            self.transport.abort()
        except Exception:
            logger.exception("WebSocket failed")
            self._task = None
            self.close(CloseReason.INTERNAL_ERROR)
        else:
            self._task = None
            self.close()
