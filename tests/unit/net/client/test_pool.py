"""Requests over kept connections: reuse, second tries, streams both ways, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from pilothouse.net.client import HttpClient, Outbound
from pilothouse.net.dialing import OutgoingError, Target

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HOST = [(b"Host", b"x")]


@pytest.fixture
async def listen() -> AsyncIterator[Callable[[Serve], Awaitable[Target]]]:
    servers: list[asyncio.Server] = []

    async def start(serve: Serve) -> Target:
        servers.append(await asyncio.start_server(serve, "127.0.0.1", 0))
        return Target("127.0.0.1", servers[-1].sockets[0].getsockname()[1])

    yield start
    for server in servers:
        server.close()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.close()


async def test_a_dead_kept_connection_is_replaced(client: HttpClient, listen: Callable[..., Awaitable[Target]]) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await reader.read(1)  # the next request, which gets no answer
        writer.close()

    target = await listen(serve)
    for _ in range(3):
        reply = await client.send(target, Outbound("GET", b"/%2F?a=%20b", HOST))
        assert await reply.read(10) == b"ok"
        await reply.close()
    assert heads == [b"GET /%2F?a=%20b HTTP/1.1\r\nHost: x\r\n\r\n"] * 3


async def test_what_ends_where_its_head_says_leaves_the_connection_to_the_next(
    client: HttpClient, listen: Callable[..., Awaitable[Target]]
) -> None:
    answers = {
        b"whole": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"none": b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n",
        b"head": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        b"last": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    }
    made = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal made
        made += 1
        while head := await reader.read(1000):
            writer.write(answers[head.split(b" ")[1]])
        writer.close()

    target = await listen(serve)
    for name, body, connections in (
        (b"whole", b"ok", 1),
        (b"empty", b"", 1),
        (b"none", b"", 1),
        (b"head", b"", 1),
        (b"last", b"ok", 1),
        (b"whole", b"ok", 2),
    ):
        reply = await client.send(target, Outbound("HEAD" if name == b"head" else "GET", name, HOST))
        assert reply.is_complete and await reply.read(10) == body
        assert b"".join([piece async for piece in reply.pieces()]) == body
        await reply.close()
        assert made == connections


async def test_a_connection_is_one_exchanges_until_its_answer_is_taken(
    client: HttpClient, listen: Callable[..., Awaitable[Target]]
) -> None:
    """Head and body arrive at once, before whoever waits for them has its turn: nobody else may begin by then."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split(b" ")[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path))

    target = await listen(serve)

    async def ask(number: int) -> None:
        for attempt in range(20):
            path = b"/%d/%d" % (number, attempt)
            reply = await client.send(target, Outbound("GET", path, HOST))
            assert await reply.read(100) == path
            await reply.close()
            reply.drop()  # as for a client that leaves later: the connection is another's by now

    async with asyncio.timeout(60):
        await asyncio.gather(*map(ask, range(16)))


async def test_streams_both_ways(client: HttpClient, listen: Callable[..., Awaitable[Target]]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while size := int(await reader.readline(), 16):
            piece = await reader.readexactly(size + 2)
            writer.write(b"%x\r\n%b" % (size, piece))
        writer.write(b"0\r\n\r\n")
        writer.close()

    said: asyncio.Queue[bytes] = asyncio.Queue()

    async def body() -> AsyncIterator[bytes]:
        while piece := await said.get():
            yield piece

    reply = await client.send(await listen(serve), Outbound("POST", b"/", HOST, body()))
    pieces = reply.pieces()
    for word in (b"one", b"two", b"three"):
        await said.put(word)
        assert await anext(pieces) == word
    await said.put(b"")
    with pytest.raises(StopAsyncIteration):
        await anext(pieces)
    await reply.close()


async def test_back_pressure(client: HttpClient, listen: Callable[..., Awaitable[Target]]) -> None:
    sent = 0
    blocked = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while sent < 64 << 20:
                writer.write(b"x" * 65536)
                sent += 65536
                async with asyncio.timeout(0.5):
                    await writer.drain()
        except TimeoutError:
            blocked.set()
        writer.transport.abort()

    reply = await client.send(await listen(serve), Outbound("GET", b"/", HOST))
    await blocked.wait()
    assert sent < 32 << 20
    await reply.close()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200", "unexpected EOF"),
        (b"nonsense\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * (1 << 20) + b"\r\n\r\n", "headers exceeded"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "invalid byte in chunk length"),
    ],
)
async def test_bad_answers(
    client: HttpClient, listen: Callable[..., Awaitable[Target]], answer: bytes, words: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    with pytest.raises(OutgoingError, match=words):
        reply = await client.send(await listen(serve), Outbound("GET", b"/", HOST))
        await reply.read(1 << 20)


async def test_more_than_was_announced_is_not_believed(
    client: HttpClient, listen: Callable[..., Awaitable[Target]]
) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await reader.read()
        writer.close()

    target = await listen(serve)
    for _ in range(2):
        reply = await client.send(target, Outbound("GET", b"/", HOST))
        assert await reply.read(10) == b"ok"
        await reply.close()
    assert connections == 2


async def test_leaving_closes_the_connection(client: HttpClient, listen: Callable[..., Awaitable[Target]]) -> None:
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nline\n")
        await reader.read()
        gone.set()
        writer.close()

    reply = await client.send(await listen(serve), Outbound("GET", b"/", HOST))
    assert await anext(reply.pieces()) == b"line\n"
    await reply.close()
    await gone.wait()


async def test_many_at_once_never_get_each_others_answers(
    client: HttpClient, listen: Callable[..., Awaitable[Target]]
) -> None:
    """Whoever still holds an answer has no say over a connection that serves another by now."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                name = head.split(b" ")[1]
                body = name * 3000
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        except asyncio.IncompleteReadError:
            writer.close()

    target = await listen(serve)
    held = []

    async def ask(number: int) -> None:
        for turn in range(20):
            name = b"/%d-%d" % (number, turn)
            reply = await client.send(target, Outbound("GET", name, HOST))
            assert await reply.read(1 << 20) == name * 3000
            await asyncio.sleep(0)
            if number % 2:
                reply.drop()
            await reply.close()
            held.append(reply)

    async with asyncio.timeout(120):
        await asyncio.gather(*(ask(number) for number in range(20)))
    assert len(held) == 400


async def test_after_a_renewal_no_connection_serves_again(
    client: HttpClient, listen: Callable[..., Awaitable[Target]]
) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    target = await listen(serve)
    for expected in (1, 1):
        reply = await client.send(target, Outbound("GET", b"/", [(b"Host", b"x")]))
        assert (await reply.read(10), connections) == (b"ok", expected)
    client.renew()
    under_way = await client.send(target, Outbound("GET", b"/", [(b"Host", b"x")]))
    assert connections == 2
    client.renew()
    await under_way.read(10)
    await client.send(target, Outbound("GET", b"/", [(b"Host", b"x")]))
    assert connections == 3


async def test_a_request_that_cannot_be_sent_leaves_no_connection_open(
    client: HttpClient, listen: Callable[..., Awaitable[Target]]
) -> None:
    """It has taken a kept one by then."""
    closed = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            if await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        closed.set()

    target = await listen(serve)
    await (await client.send(target, Outbound("GET", b"/", HOST))).close()
    with pytest.raises(OutgoingError):
        await client.send(target, Outbound("GET", b"/", [*HOST, (b"a", b"b\r\nc: d")]))
    async with asyncio.timeout(60):
        await closed.wait()
