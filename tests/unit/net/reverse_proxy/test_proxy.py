"""The reverse proxy between a real client connection and a real backend, honest or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from pilothouse.net.client import HttpClient
from pilothouse.net.dialing import OutgoingError, Target
from pilothouse.net.listener import Listener, bind
from pilothouse.net.messages import Request, Response
from pilothouse.net.reverse_proxy import Destination, forward, pass_upgrade, wants_upgrade
from pilothouse.net.server import HttpServer

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Between:
    """A proxy that listens; ``backend`` is what it passes requests on to."""

    def __init__(self) -> None:
        self.backend: Serve
        self.heads: list[bytes] = []
        self.connections = 0
        self.gone = asyncio.Event()

    async def start(self) -> None:
        self._client = HttpClient()
        self._behind = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._target = Target("127.0.0.1", self._behind.sockets[0].getsockname()[1])
        self._http = HttpServer(self._handle)
        self._listener = Listener(self._http, bind("127.0.0.1", 0))
        self._listener.start()

    async def stop(self) -> None:
        self._listener.stop()
        await self._listener.wait_stopped()
        await self._http.close()
        await self._client.close()
        self._behind.close()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._listener.address)

    async def ask(self, sent: bytes) -> bytes:
        """Everything that comes back until the connection ends."""
        reader, writer = await self.connect()
        writer.write(sent)
        try:
            async with asyncio.timeout(120):
                return await reader.read()
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            await self.backend(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.gone.set()
            writer.close()

    async def _handle(self, request: Request) -> Response:
        path = request.raw_path.removeprefix("/base").encode()
        destination = Destination(self._target, path, request.query.encode(), prefix="/base", refuse_redirects=False)
        try:
            if wants_upgrade(request):
                return await pass_upgrade(self._client, request, destination)
            return await forward(self._client, request, destination)
        except OutgoingError as error:
            return Response(503, str(error).encode(), b"text/plain")


@pytest.fixture
async def between() -> AsyncIterator[Between]:
    made = Between()
    await made.start()
    yield made
    await made.stop()


def answering(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return serve


async def test_what_travels(between: Between) -> None:
    between.backend = answering(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Own: 2\r\n"
        b"Access-Control-Allow-Origin: *\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nok"
    )
    answer = await between.ask(
        b"GET /base/a%2Fb//c/../?q=%20+&q=2 HTTP/1.1\r\nHost: api\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n"
        b"Authorization: Bearer secret\r\nX-Remote-User: root\r\nImpersonate-User: root\r\nTE: trailers\r\n"
        b"X-Forwarded-For: 1.2.3.4\r\nAccept: */*\r\nKeep-Alive: 5\r\n\r\n"
    )
    line, *sent = between.heads[0].strip().split(b"\r\n")
    assert line == b"GET /a%2Fb//c/../?q=%20+&q=2 HTTP/1.1"
    assert dict(pair.split(b": ", 1) for pair in sent) == {
        b"Host": b"api",
        b"Accept": b"*/*",
        b"Te": b"trailers",
        b"X-Forwarded-For": b"1.2.3.4, 127.0.0.1",
        b"X-Forwarded-Uri": b"/base/a%2Fb/",
    }
    head, _, body = answer.partition(b"\r\n\r\n")
    assert body == b"ok"
    assert head.count(b"Set-Cookie") == 2 and b"X-Own: 2" in head
    assert b"X-Hop" not in head and b"Access-Control" not in head


async def test_bodies_stream_both_ways(between: Between) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while size := int(await reader.readline(), 16):
            writer.write(b"%x\r\n%b" % (size, await reader.readexactly(size + 2)))
        writer.write(b"0\r\n\r\n")

    between.backend = echo
    reader, writer = await between.connect()
    writer.write(b"POST /base/ HTTP/1.1\r\nHost: api\r\nTransfer-Encoding: chunked\r\n\r\n")
    for word in (b"one", b"three"):
        writer.write(b"%x\r\n%b\r\n" % (len(word), word))
        await reader.readuntil(b"%x\r\n%b\r\n" % (len(word), word))
    writer.write(b"0\r\n\r\n")
    await reader.readuntil(b"0\r\n\r\n")
    writer.close()


async def test_trailers_travel_both_ways(between: Between) -> None:
    body = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal body
        body = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Content-Length\r\n\r\n")
        writer.write(b"2\r\nok\r\n0\r\nx-sum: 7\r\nContent-Length: 9\r\nX-More: 8\r\n\r\n")

    between.backend = serve
    answer = await between.ask(
        b"POST /base/ HTTP/1.1\r\nHost: api\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
        b"Trailer: X-Own, X-Remote-User, Content-Length\r\n\r\n"
        b"1\r\na\r\n0\r\nX-Own: 1\r\nX-Remote-User: root\r\nContent-Length: 5\r\nX-Unsaid: 1\r\n\r\n"
    )
    assert b"\r\nTrailer: X-Own\r\n" in between.heads[0]
    assert body == b"1\r\na\r\n0\r\nX-Own: 1\r\n\r\n"
    head, _, rest = answer.partition(b"\r\n\r\n")
    assert b"\r\nTrailer: X-Sum\r\n" in head
    assert rest == b"2\r\nok\r\n0\r\nX-Sum: 7\r\nX-More: 8\r\n\r\n"


async def test_long_answers_keep_their_length(between: Between) -> None:
    between.backend = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000)
    answer = await between.ask(b"GET /base/ HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"Content-Length: 1000000" in head and len(body) == 1_000_000


async def test_lies_about_length_break_the_answer_off(between: Between) -> None:
    between.backend = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
    answer = await between.ask(b"GET /base/ HTTP/1.1\r\nHost: api\r\n\r\n")
    assert not answer.endswith(b"0\r\n\r\n")


async def test_a_client_that_leaves_ends_the_request(between: Between) -> None:
    async def forever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst\n")
        await reader.read()

    between.backend = forever
    reader, writer = await between.connect()
    writer.write(b"GET /base/watch HTTP/1.1\r\nHost: api\r\n\r\n")
    await reader.readuntil(b"first\n")
    writer.close()
    await between.gone.wait()


async def test_links_are_led_back(between: Between) -> None:
    between.backend = answering(b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
    answer = await between.ask(b"GET /base/ HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n")
    assert b"Location: /base/there\r\n" in answer
    page = b'<a href="/x">'
    between.backend = answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n" + page)
    answer = await between.ask(b"GET /base/ HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n")
    assert answer.endswith(b'<a href="/base/x">')


UPGRADE = b"GET /base/ws HTTP/1.1\r\nHost: api\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n"


async def test_upgrades(between: Between) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\nhello\n")
        while line := await reader.readline():
            writer.write(line.upper())

    between.backend = shout
    reader, writer = await between.connect()
    writer.write(UPGRADE + b"early\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 ") and b"Upgrade: test" in head
    assert [await reader.readline(), await reader.readline()] == [b"hello\n", b"EARLY\n"]
    writer.write(b"more\n")
    assert await reader.readline() == b"MORE\n"
    writer.close()
    await between.gone.wait()


async def test_a_refused_upgrade_is_no_tunnel(between: Between) -> None:
    """CVE-2018-1002105: what comes after a refused upgrade must not reach the backend on the same connection."""
    reached: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        reached.append(await reader.read())

    between.backend = refuse
    answer = await between.ask(UPGRADE + b"GET /base/secret HTTP/1.1\r\nHost: api\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ") and answer.endswith(b"\r\n\r\nno")
    assert b"Connection: close" in answer
    await between.gone.wait()
    assert reached == [b""]
    assert between.connections == 1


@pytest.mark.parametrize("status", [b"200 OK", b"302 Found", b"204 No Content"])
async def test_an_upgrade_that_is_neither_granted_nor_refused(between: Between, status: bytes) -> None:
    between.backend = answering(b"HTTP/1.1 " + status + b"\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n")
    answer = await between.ask(UPGRADE.replace(b"Connection: Upgrade", b"Connection: Upgrade, close"))
    assert answer.startswith(b"HTTP/1.1 503 ") and b"invalid upgrade response: status code" in answer
    assert b"evil" not in answer


@pytest.mark.parametrize(
    "smuggled",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    ],
)
async def test_answers_are_not_mixed_up(between: Between, smuggled: bytes) -> None:
    between.backend = answering(smuggled)
    for _ in range(2):
        answer = await between.ask(b"GET /base/ HTTP/1.1\r\nHost: api\r\nConnection: close\r\n\r\n")
        assert answer.count(b"HTTP/1.1") == 1 and b"evil" not in answer
    assert between.connections == 2


async def test_requests_are_not_smuggled(between: Between) -> None:
    """Both framings in one request: the coding wins here, and the backend is told of nothing else."""
    between.backend = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    await between.ask(
        b"POST /base/ HTTP/1.1\r\nHost: api\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\nGET /base/admin HTTP/1.1\r\nHost: api\r\n\r\n"
    )
    assert len(between.heads) == 1
    assert b"Content-Length" not in between.heads[0] and b"Transfer-Encoding: chunked" in between.heads[0]
