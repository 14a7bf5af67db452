"""Requests over HTTP/2: against a server of ours, and against ones that speak in frames and mean no good."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import hpack
import pytest

from pilothouse.net.client import HttpClient, Outbound, Reply
from pilothouse.net.client.http2 import Http2ClientConnection
from pilothouse.net.dialing import EITHER, Dialer, OutgoingError, Target, Tls
from pilothouse.net.http2 import frames
from pilothouse.net.http2.settings import Http2Options
from pilothouse.net.listener import Listener, bind
from pilothouse.net.messages import BodyWriter, Request, Response
from pilothouse.net.server import HttpServer
from pilothouse.net.tls import ServerTls, TlsFiles

HOST = [(b"Host", b"x")]
TLS = Tls(insecure=True, protocols=EITHER)
SECONDS = 60


class Behind:
    """A server of ours; ``connections`` are those that were made to it."""

    def __init__(self, serving: TlsFiles, streams: int) -> None:
        self.http = HttpServer(self._handle, http2=Http2Options(max_streams=streams))
        self.listener = Listener(self.http, bind("127.0.0.1", 0), ServerTls(serving).context)
        self.target = Target("127.0.0.1", self.listener.address[1], TLS)
        self.requests: list[Request] = []
        self.cancelled = asyncio.Event()
        self.written = 0
        self.release = asyncio.Event()

    async def _handle(self, request: Request) -> Response:
        self.requests.append(request)
        if request.path == "/wait":
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if request.path == "/stream":
            return Response(200, b"", b"text/plain", stream=self._write)
        if request.path == "/trailers":
            return Response(200, b"", b"text/plain", [(b"Trailer", b"X-End")], stream=_write_trailers)
        body = await request.body(8 << 20)
        return Response(200, body or request.target, b"text/plain", [(b"x-method", request.method.encode())])

    async def _write(self, writer: BodyWriter) -> None:
        for _ in range(1024):
            writer.write(b"x" * 65536)
            self.written += 65536
            await writer.drain()


@asynccontextmanager
async def waiting_at(behind: Behind, client: HttpClient, count: int) -> AsyncIterator[None]:
    """So many requests wait there, and are answered in the end."""
    before = len(behind.requests)
    asked = [asyncio.create_task(client.send(behind.target, Outbound("GET", b"/wait", HOST))) for _ in range(count)]
    while len(behind.requests) < before + count:
        await asyncio.sleep(0.01)
    yield
    behind.release.set()
    for task in asked:
        reply = await task
        assert (reply.status, await reply.read(100)) == (200, b"/wait")
        await reply.close()


async def _write_trailers(writer: BodyWriter) -> None:
    writer.write(b"body")
    writer.trailers = [(b"x-end", b"1")]


@pytest.fixture
def serving(authority: Any) -> TlsFiles:
    return TlsFiles(*authority.issue("server", "127.0.0.1", "localhost"))


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient(few=0)
    yield made
    await made.close()


@pytest.fixture
async def start(serving: TlsFiles) -> AsyncIterator[Callable[[int], Behind]]:
    made: list[Behind] = []

    def run(streams: int = 100) -> Behind:
        made.append(Behind(serving, streams))
        made[-1].listener.start()
        return made[-1]

    yield run
    for each in made:
        each.release.set()
        each.listener.stop()
        await each.listener.wait_stopped()
        await each.http.close()


async def test_a_server_that_speaks_nothing_else_is_asked_over_http2_from_the_first(
    start: Callable[..., Behind],
) -> None:
    behind = start()
    refused = 0

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal refused
        hello = await reader.read(16384)
        if b"\x02h2" not in hello:
            refused += 1
            writer.write(b"\x15\x03\x03\x00\x02\x02\x78")  # an alert: no_application_protocol
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", behind.target.port)
        back.write(hello)

        async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    client = HttpClient()
    async with await asyncio.start_server(relay, "127.0.0.1", 0) as listening:
        target = Target("127.0.0.1", listening.sockets[0].getsockname()[1], TLS)
        for number in range(3):
            reply = await client.send(target, Outbound("GET", b"/%d" % number, HOST))
            assert (reply.status, await reply.read(100)) == (200, b"/%d" % number)
            await reply.close()
        await client.close()
    assert refused == 1
    assert len({request.connection for request in behind.requests}) == 1


async def test_many_share_one_connection(client: HttpClient, start: Callable[..., Behind]) -> None:
    behind = start()

    async def ask(number: int) -> None:
        reply = await client.send(behind.target, Outbound("GET", b"/%d?a=%%20b" % number, HOST))
        assert (reply.status, await reply.read(100)) == (200, b"/%d?a=%%20b" % number)
        assert reply.head.get(b"x-method") == b"GET" and (b"X-Method", b"GET") in reply.head.headers
        await reply.close()

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*map(ask, range(80)))
        await asyncio.gather(*map(ask, range(80)))
    assert len(behind.http.connections) == 1
    assert {request.host for request in behind.requests} == {b"x"}


async def test_few_have_connections_of_their_own_and_more_share_one(start: Callable[..., Behind]) -> None:
    behind, client = start(), HttpClient(few=3)
    async with asyncio.timeout(SECONDS):
        async with waiting_at(behind, client, 20):
            assert len(behind.http.connections) == 4
        await client.send(behind.target, Outbound("GET", b"/", HOST))
        assert len(behind.http.connections) == 4
        await client.close()


async def test_a_full_connection_gets_a_second_one_beside_it(client: HttpClient, start: Callable[..., Behind]) -> None:
    behind = start(10)
    async with asyncio.timeout(SECONDS):
        first = await client.send(behind.target, Outbound("GET", b"/", HOST))  # after this, its limit is known
        await first.close()
        async with waiting_at(behind, client, 25):
            assert len(behind.http.connections) == 3


@pytest.mark.parametrize("size", [1, 16_384, 16_385, 300_000, 2_000_000])
async def test_bodies_both_ways(client: HttpClient, start: Callable[..., Behind], size: int) -> None:
    behind, body = start(), bytes(range(256)) * (size // 256 + 1)

    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, size, 70_000):
            yield body[:size][at : at + 70_000]

    async with asyncio.timeout(SECONDS):
        for sent in (body[:size], pieces()):
            reply = await client.send(behind.target, Outbound("POST", b"/", HOST, sent))
            assert await reply.read(size) == body[:size]
            await reply.close()


async def test_trailers(client: HttpClient, start: Callable[..., Behind]) -> None:
    reply = await client.send(start().target, Outbound("GET", b"/trailers", HOST))
    assert await reply.read(100) == b"body"
    assert list(reply.trailers) == [(b"X-End", b"1")]


async def test_a_request_that_is_given_up_ends_there_too(client: HttpClient, start: Callable[..., Behind]) -> None:
    behind = start()
    asking = asyncio.create_task(client.send(behind.target, Outbound("GET", b"/wait", HOST)))
    while not behind.requests:
        await asyncio.sleep(0.01)
    asking.cancel()
    async with asyncio.timeout(SECONDS):
        await behind.cancelled.wait()
        reply = await client.send(behind.target, Outbound("GET", b"/next", HOST))
    assert await reply.read(100) == b"/next"
    assert len(behind.http.connections) == 1


async def test_an_answer_that_nobody_reads_holds_up_no_other(client: HttpClient, start: Callable[..., Behind]) -> None:
    behind = start()
    async with asyncio.timeout(SECONDS):
        slow = []
        for _ in range(20):
            slow.append(await client.send(behind.target, Outbound("GET", b"/stream", HOST)))
            while slow[-1].body.size < 256 * 1024:
                await asyncio.sleep(0.01)
        for number in range(50):
            reply = await client.send(behind.target, Outbound("GET", b"/%d" % number, HOST))
            assert await reply.read(100) == b"/%d" % number
        assert len(behind.http.connections) <= 6
        assert sum(reply.body.size for reply in slow) < 20 << 20
        assert behind.written < 20 * (4 << 20)
        taken = 0
        async for piece in slow[0].pieces():
            taken += len(piece)
        assert taken == 64 << 20
        for reply in slow:
            await reply.close()


async def test_renewed_connections(client: HttpClient, start: Callable[..., Behind]) -> None:
    behind = start()
    slow = asyncio.create_task(client.send(behind.target, Outbound("GET", b"/wait", HOST)))
    while not behind.requests:
        await asyncio.sleep(0.01)
    client.renew()
    async with asyncio.timeout(SECONDS):
        reply = await client.send(behind.target, Outbound("GET", b"/new", HOST))
        assert await reply.read(100) == b"/new"
        assert len({id(request.connection) for request in behind.requests}) == 2
        behind.release.set()
        assert (await slow).status == 200


async def test_one_that_speaks_http1_alone(client: HttpClient, serving: TlsFiles) -> None:
    met = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal met
        met += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.cert_file, serving.key_file)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    target = Target("127.0.0.1", server.sockets[0].getsockname()[1], TLS)

    async def ask() -> None:
        reply = await client.send(target, Outbound("GET", b"/", HOST))
        assert await reply.read(10) == b"ok"
        await reply.close()

    async with asyncio.timeout(SECONDS):
        await asyncio.gather(*(ask() for _ in range(10)))
        await ask()
    assert 1 <= met <= 10
    server.close()


# Servers that speak in frames


class FrameServer:
    """The server's side of a connection. Fields are coded by an HPACK of others."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._encoder = hpack.Encoder()

    async def greet(self) -> None:
        await self._reader.readexactly(len(frames.PREFACE))
        self.writer.write(frames.settings([]))

    def send(self, kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> None:
        self.writer.write(frames.header(len(payload), kind, flags, stream) + payload)

    def head(self, stream: int, *fields: tuple[str, str], status: str = "200", ended: bool = False) -> None:
        block = bytes(self._encoder.encode([(":status", status), *fields]))
        self.send(frames.HEADERS, frames.END_HEADERS | (frames.END_STREAM if ended else 0), stream, block)

    async def receive(self) -> tuple[int, int, int, bytes]:
        high, low, kind, flags, stream = frames.HEADER.unpack(await self._reader.readexactly(9))
        return kind, flags, stream, await self._reader.readexactly(high << 8 | low)

    async def request(self) -> int:
        """The stream of the next request."""
        while True:
            kind, _, stream, _ = await self.receive()
            if kind == frames.HEADERS:
                return stream


Play = Callable[[FrameServer], Awaitable[None]]


@pytest.fixture
async def play(serving: TlsFiles) -> AsyncIterator[Callable[[Play], Awaitable[Target]]]:
    servers: list[asyncio.Server] = []

    async def run(part: Play) -> Target:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server = FrameServer(reader, writer)
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await server.greet()
                await part(server)
                await reader.read()
            writer.transport.abort()

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(serving.cert_file, serving.key_file)
        context.set_alpn_protocols(["h2"])
        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
        return Target("127.0.0.1", servers[-1].sockets[0].getsockname()[1], TLS)

    yield run
    for server in servers:
        server.close()


async def ask(client: HttpClient, target: Target, method: str = "GET") -> tuple[Reply, bytes]:
    async with asyncio.timeout(SECONDS):
        reply = await client.send(target, Outbound(method, b"/", HOST))
        try:
            return reply, await reply.read(1 << 20)
        finally:
            await reply.close()


async def lie_more(server: FrameServer) -> None:
    server.head(await server.request(), ("content-length", "2"))
    server.send(frames.DATA, frames.END_STREAM, 1, b"too long")


async def lie_less(server: FrameServer) -> None:
    server.head(await server.request(), ("content-length", "20"))
    server.send(frames.DATA, frames.END_STREAM, 1, b"too short")


async def data_first(server: FrameServer) -> None:
    server.send(frames.DATA, frames.END_STREAM, await server.request(), b"x")


async def no_status(server: FrameServer) -> None:
    block = bytes(hpack.Encoder().encode([("content-length", "2")]))
    server.send(frames.HEADERS, frames.END_HEADERS, await server.request(), block)


async def break_out(server: FrameServer) -> None:
    server.head(await server.request(), ("x-a", "b\r\nx-c: d"), ended=True)


async def interim_without_end(server: FrameServer) -> None:
    stream = await server.request()
    for _ in range(10):
        server.head(stream, status="103")


async def reset(server: FrameServer) -> None:
    server.writer.write(frames.rst_stream(await server.request(), frames.INTERNAL_ERROR))


async def die_midway(server: FrameServer) -> None:
    server.head(await server.request(), ("content-length", "20"))
    server.send(frames.DATA, 0, 1, b"some")
    server.writer.write_eof() if server.writer.can_write_eof() else server.writer.close()


async def head_without_end(server: FrameServer) -> None:
    server.send(frames.HEADERS, 0, await server.request(), b"\x88")
    for _ in range(100):
        server.send(frames.CONTINUATION, 0, 1, b"\0\x01x\x7f\xe1\x7e" + b"y" * 16_353)


async def continue_with_nothing(server: FrameServer) -> None:
    server.send(frames.HEADERS, 0, await server.request(), b"\x88")
    server.writer.write(frames.header(0, frames.CONTINUATION, 0, 1) * 50_000)


async def overrun_window(server: FrameServer) -> None:
    server.head(await server.request())
    for _ in range(64):
        server.send(frames.DATA, 0, 1, b"x" * 16_384)


async def ping_and_never_read(server: FrameServer) -> None:
    await server.request()
    server.writer.write((frames.header(8, frames.PING, 0, 0) + b"12345678") * 50_000)


async def push(server: FrameServer) -> None:
    server.send(frames.PUSH_PROMISE, frames.END_HEADERS, await server.request(), b"\0\0\0\2\x88")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (lie_more, "more than declared Content-Length"),
        (lie_less, "unexpected EOF"),
        (data_first, "DATA before a HEADERS"),
        (no_status, "missing status"),
        (break_out, "malformed header value"),
        (interim_without_end, "too many 1xx"),
        (reset, "INTERNAL_ERROR; received from peer"),
        (die_midway, "EOF"),
        (head_without_end, "header block too large"),
        (continue_with_nothing, "too much for nothing"),
        (ping_and_never_read, "too much for nothing"),
        (push, "nothing was to be pushed"),
    ],
)
async def test_bad_answers(
    client: HttpClient, play: Callable[[Play], Awaitable[Target]], part: Play, words: str
) -> None:
    with pytest.raises(OutgoingError, match=words):
        await ask(client, await play(part))


async def test_more_than_the_window_is_not_kept(client: HttpClient, play: Callable[[Play], Awaitable[Target]]) -> None:
    target = await play(overrun_window)
    async with asyncio.timeout(SECONDS):
        reply = await client.send(target, Outbound("GET", b"/", HOST))
        while reply.body.size < 256 * 1024:
            await asyncio.sleep(0.01)
        with pytest.raises(OutgoingError, match="more than the window"):
            async for _ in reply.pieces():
                pass
    assert reply.body.size <= 1 << 20


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_was_not_looked_at_goes_elsewhere(
    client: HttpClient, play: Callable[[Play], Awaitable[Target]], method: str
) -> None:
    turns = 0

    async def part(server: FrameServer) -> None:
        nonlocal turns
        turns += 1
        stream = await server.request()
        if turns == 1:
            server.writer.write(frames.rst_stream(stream, frames.REFUSED_STREAM))
            await server.request()
            server.writer.write(frames.goaway(stream, frames.NO_ERROR))
        else:
            server.head(stream, ended=True)

    reply, body = await ask(client, await play(part), method)
    assert (reply.status, body, turns) == (200, b"", 2)


async def test_what_may_have_been_done_is_not_repeated(
    client: HttpClient, play: Callable[[Play], Awaitable[Target]]
) -> None:
    requests = 0

    async def part(server: FrameServer) -> None:
        nonlocal requests
        server.head(await server.request(), ended=True)
        await server.request()
        requests += 1
        server.writer.transport.abort()

    target = await play(part)
    await ask(client, target)
    with pytest.raises(OutgoingError):
        await ask(client, target, "POST")
    assert requests == 1


async def test_a_kept_connection_that_died(client: HttpClient, play: Callable[[Play], Awaitable[Target]]) -> None:
    turns = 0

    async def part(server: FrameServer) -> None:
        nonlocal turns
        turns += 1
        server.head(await server.request(), ended=True)
        await server.request()
        server.writer.transport.abort()

    target = await play(part)
    for _ in range(3):
        assert (await ask(client, target))[0].status == 200
    assert turns == 3


@pytest.mark.parametrize("trickling", [False, True])
async def test_silence_and_what_trickles_end_the_connection(
    play: Callable[[Play], Awaitable[Target]], trickling: bool
) -> None:
    """A frame that never is complete would hold up every stream of the connection for good."""

    async def part(server: FrameServer) -> None:
        stream = await server.request()
        server.writer.write(frames.header(10_000, frames.HEADERS, frames.END_HEADERS, stream))
        while trickling:
            server.writer.write(b"\0")
            await server.writer.drain()
            await asyncio.sleep(0.01)

    ended = asyncio.Event()
    target = await play(part)
    _, connection = await Dialer().connect(
        Target(target.host, target.port, Tls(insecure=True, protocols=("h2",))),
        lambda: Http2ClientConnection(lambda _: ended.set(), silence=0.2, patience_seconds=0.2),
    )
    async with asyncio.timeout(SECONDS):
        with pytest.raises(OutgoingError, match="client connection lost"):
            await connection.exchange(Outbound("GET", b"/", HOST))
        await ended.wait()


async def test_a_sign_of_life_is_enough(play: Callable[[Play], Awaitable[Target]]) -> None:
    pinged = asyncio.Event()

    async def part(server: FrameServer) -> None:
        stream = await server.request()
        while not pinged.is_set():
            kind, flags, _, payload = await server.receive()
            if kind == frames.PING and not flags:
                pinged.set()
                server.writer.write(frames.ping_ack(payload))
        server.head(stream, ended=True)

    target = await play(part)
    _, connection = await Dialer().connect(
        Target(target.host, target.port, Tls(insecure=True, protocols=("h2",))),
        lambda: Http2ClientConnection(lambda _: None, silence=0.05, patience_seconds=SECONDS),
    )
    async with asyncio.timeout(SECONDS):
        assert (await connection.exchange(Outbound("GET", b"/", HOST))).status == 200
    assert pinged.is_set()
    connection.drop()
