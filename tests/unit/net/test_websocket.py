import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, Pong, TextMessage

from pilothouse.net import websocket
from pilothouse.net.messages import ClientDisconnected, Request, Response
from pilothouse.net.request_head import parse_header_block, parse_request_line
from pilothouse.net.websocket import BadHandshake, WebSocket, accept_for, frame_binary, frame_text, read_handshake

GOOD = {
    "Host": "x",
    "Connection": "keep-alive, Upgrade",
    "Upgrade": "WebSocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}


def head_of(headers: dict[str, str], method: str = "GET") -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if value)
    return f"{method} / HTTP/1.1\r\n{lines}\r\n".encode()


def request_of(headers: dict[str, str], method: str = "GET") -> Request:
    line, block = head_of(headers, method).split(b"\r\n", 1)
    return Request(
        None,  # type: ignore[arg-type]
        parse_request_line(line),
        parse_header_block(block.removesuffix(b"\r\n\r\n")),
        True,
        None,
    )


# The handshake


def test_the_accept_is_that_of_the_rfc() -> None:
    assert accept_for(b"dGhlIHNhbXBsZSBub25jZQ==") == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize(
    ("changed", "asks"),
    [
        ({}, True),
        ({"Upgrade": "SPDY/3.1"}, False),
        ({"Upgrade": ""}, False),
        ({"Connection": "keep-alive"}, False),
        ({"Connection": "UPGRADE"}, True),
        ({"Sec-WebSocket-Key": "", "Sec-WebSocket-Version": ""}, True),
    ],
)
def test_who_asks_for_a_websocket(changed: dict[str, str], asks: bool) -> None:
    assert request_of(GOOD | changed).asks_for_websocket is asks


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("", []),
        ("  ", []),
        ("v4.channel.k8s.io", [(b"Sec-WebSocket-Protocol", b"v4.channel.k8s.io")]),
        (" odd ", [(b"Sec-WebSocket-Protocol", b"odd")]),
    ],
)
def test_one_subprotocol_is_echoed(asked: str, answered: list[tuple[bytes, bytes]]) -> None:
    assert read_handshake(request_of(GOOD | {"Sec-WebSocket-Protocol": asked})).headers() == [
        (b"Upgrade", b"websocket"),
        (b"Connection", b"Upgrade"),
        (b"Sec-WebSocket-Accept", b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        *answered,
    ]


@pytest.mark.parametrize("asked", ["a, b", "a,", ",", "a,b,c"])
def test_nobody_chooses_among_subprotocols(asked: str) -> None:
    with pytest.raises(BadHandshake) as raised:
        read_handshake(request_of(GOOD | {"Sec-WebSocket-Protocol": asked})).headers()
    assert (raised.value.status, raised.value.text) == (400, "")


@pytest.mark.parametrize(
    ("changed", "method", "status", "text"),
    [
        ({}, "POST", 405, "bad method"),
        ({"Upgrade": "h2c"}, "GET", 400, "not websocket protocol"),
        ({"Connection": "close"}, "GET", 400, "not websocket protocol"),
        ({"Sec-WebSocket-Key": ""}, "GET", 400, "mismatch challenge/response"),
        ({"Sec-WebSocket-Version": ""}, "GET", 400, "missing or bad WebSocket Version"),
        ({"Sec-WebSocket-Version": "8"}, "GET", 400, "missing or bad WebSocket Version"),
    ],
)
def test_bad_handshakes(changed: dict[str, str], method: str, status: int, text: str) -> None:
    with pytest.raises(BadHandshake) as raised:
        read_handshake(request_of(GOOD | changed, method))
    bad = raised.value
    assert (bad.status, bad.text) == (status, text)
    assert bad.headers == (((b"Sec-WebSocket-Version", b"13"),) if "Version" in text else ())


# Frames


@given(st.one_of(st.text(max_size=300), st.sampled_from([125, 126, 65535, 65536, 70000]).map("x".__mul__)))
def test_frames_read_back(text: str) -> None:
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(frame_text(text.encode()) + frame_binary(text.encode()))
    got: dict[type, str | bytes] = {TextMessage: "", BytesMessage: b""}
    finished = []
    for event in client.events():
        assert isinstance(event, TextMessage | BytesMessage)
        got[type(event)] += event.data  # type: ignore[operator]
        if event.message_finished:
            finished.append(type(event))
    assert finished == [TextMessage, BytesMessage]
    assert got == {TextMessage: text, BytesMessage: text.encode()}


# Connections


class Peer:
    """A client after the handshake."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.parser = Connection(ConnectionType.CLIENT)
        self._events: list[Event] = []

    def send(self, *events: Event) -> None:
        self.raw.send(b"".join(bytes(self.parser.send(event)) for event in events))

    async def event(self) -> Event | None:
        while not self._events:
            data = await self.raw.reader.read(1 << 16)
            if not data:
                return None
            self.parser.receive_data(data)
            self._events.extend(self.parser.events())
        return self._events.pop(0)

    async def ends_with(self, code: int) -> None:
        assert await self.event() == CloseConnection(code=code, reason="")
        assert await self.raw.rest() == b""

    async def breaks_off(self) -> None:
        """What was already on its way still comes, but no goodbye."""
        while (event := await self.event()) is not None:
            assert isinstance(event, BytesMessage)


Serving = Callable[[WebSocket], Any]


@pytest.fixture
async def connect(serve: Any) -> AsyncIterator[Any]:
    ended: list[WebSocket] = []

    async def start(serving: Serving, early: bytes = b"") -> tuple[Peer, Any, list[WebSocket]]:
        async def handler(request: Request) -> Response:
            headers = read_handshake(request).headers()

            def upgrade(_: asyncio.Transport, leftover: bytes) -> WebSocket:
                socket = WebSocket(leftover, serving, lambda: ended.append(socket))
                return socket

            return Response(101, headers=headers, upgrade=upgrade)

        running = await serve(handler)
        raw = await running.dial()
        raw.send(head_of(GOOD) + early)
        assert (await raw.head()).startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        return Peer(raw), running, ended

    yield start


async def for_ever(_: WebSocket) -> None:
    await asyncio.Event().wait()


async def test_messages_then_a_normal_close(connect: Any) -> None:
    async def two(socket: WebSocket) -> None:
        socket.write_frames(frame_text("grüße".encode()) + frame_binary(b"\x00\xff"))
        assert await socket.drain()

    peer, running, ended = await connect(two)
    assert await peer.event() == TextMessage(data="grüße")
    assert await peer.event() == BytesMessage(data=bytearray(b"\x00\xff"))
    await peer.ends_with(1000)
    assert len(ended) == 1
    assert not running.server.upgraded


async def test_a_close_of_the_client_is_answered_and_ends_the_service(connect: Any) -> None:
    peer, running, ended = await connect(for_ever)
    peer.send(CloseConnection(code=4321, reason="enough"))
    await peer.ends_with(1000)
    assert len(ended) == 1
    assert not running.server.upgraded


async def test_a_close_that_comes_with_the_handshake(connect: Any) -> None:
    early = bytes(Connection(ConnectionType.CLIENT).send(CloseConnection(code=1000)))
    peer, _, ended = await connect(for_ever, early)
    await peer.ends_with(1000)
    assert len(ended) == 1


async def test_a_client_that_vanishes_ends_the_service(connect: Any) -> None:
    cancelled = asyncio.Event()

    async def service(_: WebSocket) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    peer, _, _ = await connect(service)
    peer.raw.writer.transport.abort()
    await cancelled.wait()


async def test_pings_are_answered_and_messages_ignored(connect: Any) -> None:
    peer, _, _ = await connect(for_ever)
    peer.send(TextMessage(data="never mind"), Ping(payload=b"1"), BytesMessage(data=b"\xff" * 70_000))
    peer.send(TextMessage(data="in two ", message_finished=False), Ping(payload=b"2"), TextMessage(data="parts"))
    assert await peer.event() == Pong(payload=bytearray(b"1"))
    assert await peer.event() == Pong(payload=bytearray(b"2"))
    peer.send(Pong(payload=b"unasked"), CloseConnection(code=1001))
    await peer.ends_with(1000)


def masked(first: int, payload: bytes) -> bytes:
    return bytes((first, 0x80 | len(payload))) + b"\0\0\0\0" + payload


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x01x", 1002),  # not masked
        (masked(0x83, b"x"), 1002),  # no such opcode
        (masked(0xC1, b"x"), 1002),  # a reserved bit
        (masked(0x80, b"x"), 1002),  # continues nothing
        (masked(0x09, b"x"), 1002),  # a control frame in pieces
        (masked(0x88, b"\x00"), 1002),  # half a close code
        (masked(0x81, b"\xff"), 1007),  # text that is none
    ],
)
async def test_violations_end_the_connection(connect: Any, data: bytes, code: int) -> None:
    peer, _, ended = await connect(for_ever)
    peer.raw.send(data)
    await peer.ends_with(code)
    assert len(ended) == 1


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_input_is_survived(pieces: list[bytes]) -> None:
    class Sink:
        data = b""
        closing = False

        def write(self, data: bytes) -> None:
            assert not self.closing
            self.data += data

        def close(self) -> None:
            self.closing = True

        abort = close

        def is_closing(self) -> bool:
            return self.closing

    async def feed() -> None:
        sink = Sink()
        socket = WebSocket(b"", for_ever, lambda: None)
        socket.connection_made(sink)  # type: ignore[arg-type]
        for piece in pieces:
            socket.data_received(piece)
        socket.connection_lost(None)
        assert len(sink.data) <= 2 * sum(map(len, pieces)) + 4

    asyncio.run(feed())


async def test_long_messages_are_refused(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "MESSAGE_LIMIT", 1000)
    peer, _, _ = await connect(for_ever)
    peer.send(BytesMessage(data=b"x" * 1000), BytesMessage(data=b"x" * 999, message_finished=False))
    peer.send(Ping(payload=b"fine so far"))
    assert await peer.event() == Pong(payload=bytearray(b"fine so far"))
    peer.send(BytesMessage(data=b"xx"))
    await peer.ends_with(1009)


async def test_a_failure_is_told(connect: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_: WebSocket) -> None:
        raise ValueError("broken")

    peer, _, _ = await connect(broken)
    await peer.ends_with(1011)
    assert "WebSocket failed" in caplog.text


async def test_a_slow_client_holds_the_service_back(connect: Any) -> None:
    blocked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    pieces = 0

    async def flood(socket: WebSocket) -> None:
        nonlocal pieces
        data = os.urandom(50_000)
        while await socket.drain(0.0):
            socket.write_frames(frame_binary(data))
            pieces += 1
        blocked.set_result(pieces)
        await socket.drain()

    peer, _, _ = await connect(flood)
    sent = await blocked
    peer.send(Ping(payload=b"old"), Ping(payload=b"new"))
    total, pongs = 0, []
    while not isinstance(event := await peer.event(), CloseConnection):
        if isinstance(event, BytesMessage):
            total += len(event.data)
        else:
            pongs.append(event)
    assert event.code == 1000
    assert total == sent * 50_000
    assert pongs[-1:] in ([], [Pong(payload=bytearray(b"new"))])


async def test_who_does_not_read_is_cut_off(connect: Any) -> None:
    gone = asyncio.Event()

    async def flood(socket: WebSocket) -> None:
        while await socket.drain(0.0):
            socket.write_frames(frame_binary(b"x" * 50_000))
        gone.set()
        raise ClientDisconnected("client does not read")

    peer, running, ended = await connect(flood)
    await gone.wait()
    await peer.breaks_off()
    assert len(ended) == 1
    assert not running.server.upgraded


async def test_a_close_that_is_not_taken(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.0)

    async def flood(socket: WebSocket) -> None:
        while await socket.drain(0.0):
            socket.write_frames(frame_binary(b"x" * 50_000))

    peer, running, _ = await connect(flood)
    while running.server.upgraded:
        await asyncio.sleep(0)
    await peer.breaks_off()


@pytest.mark.parametrize("drained", [True, False])
async def test_the_server_goes_away(connect: Any, drained: bool) -> None:
    peer, running, ended = await connect(for_ever)
    if drained:
        running.server.begin_drain()
        assert await running.server.wait_idle()
    closing = asyncio.ensure_future(running.server.close())
    await peer.ends_with(1001)
    peer.raw.writer.close()
    await closing
    assert len(ended) == 1
    assert not running.server.upgraded
