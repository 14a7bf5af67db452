"""Requests of our own: pools, names that go elsewhere, and failures in the words of Go."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pilothouse.net.eager import start
from pilothouse.net.outgoing import Answer, OutgoingClient, OutgoingError, plain_path


class PlainServer:
    """Answers every request with what it is told to write."""

    def __init__(self) -> None:
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        self.keeps_open = self.hangs_up = False
        self.connections = 0
        self.requests: list[bytes] = []
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lengths = [line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                await reader.readexactly(int(lengths[0]) if lengths else 0)
                self.requests.append(head)
                if self.hangs_up:
                    break
                writer.write(self.answer)
                if b"Content-Length" not in self.answer and not self.keeps_open:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[PlainServer]:
    made = PlainServer()
    listening = await asyncio.start_server(made.handle, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()


@pytest.fixture
async def client() -> AsyncIterator[OutgoingClient]:
    made = OutgoingClient(agent="test")
    yield made
    await made.close()


async def test_posting_over_one_connection(server: PlainServer, client: OutgoingClient) -> None:
    for _ in range(3):
        answer = await client.post(f"http://127.0.0.1:{server.port}/a?b=c", b"body", headers={"X-Own": "1"})
        assert (answer.status, answer.body) == (200, b"hi")
    assert server.connections == 1
    assert server.requests[0].startswith(b"POST /a?b=c HTTP/1.1\r\n")
    assert b"X-Own: 1" in server.requests[0]
    assert b"User-Agent: test" in server.requests[0]


async def test_names_go_where_they_are_sent(server: PlainServer) -> None:
    dialled: list[tuple[str, int]] = []

    async def dial(host: str, port: int) -> tuple[str, int] | None:
        dialled.append((host, port))
        return "127.0.0.1", server.port

    client = OutgoingClient(dial)
    answer = await client.post("http://hook.ns.svc:443/", b"")
    assert answer.status == 200
    assert dialled == [("hook.ns.svc", 443)]
    assert b"Host: hook.ns.svc:443" in server.requests[0]
    await client.close()


async def test_names_that_lead_nowhere() -> None:
    async def dial(host: str, port: int) -> tuple[str, int] | None:
        raise OutgoingError("nothing there")

    client = OutgoingClient(dial)
    with pytest.raises(OutgoingError, match=r'Post "http://a\.b\.svc/": nothing there'):
        await client.post("http://a.b.svc/", b"")
    await client.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "unexpected EOF"),
    ],
)
async def test_broken_answers(server: PlainServer, client: OutgoingClient, answer: bytes, message: str) -> None:
    server.answer = answer
    with pytest.raises(OutgoingError) as caught:
        await client.post(f"http://127.0.0.1:{server.port}/", b"")
    assert str(caught.value) == f'Post "http://127.0.0.1:{server.port}/": {message}'


async def test_plain_answers_to_tls(server: PlainServer, client: OutgoingClient) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(speak, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    with pytest.raises(OutgoingError, match="http: server gave HTTP response to HTTPS client"):
        await client.post(f"https://127.0.0.1:{port}/", b"")
    listening.close()


async def test_answers_that_are_too_large(server: PlainServer, client: OutgoingClient) -> None:
    server.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 100
    with pytest.raises(OutgoingError, match="larger than 99 bytes"):
        await client.post(f"http://127.0.0.1:{server.port}/", b"", limit=99)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="part of a head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi", id="part of a body"),
    ],
)
async def test_a_kept_connection_is_waited_for_as_long_as_any(
    server: PlainServer, client: OutgoingClient, answer: bytes
) -> None:
    url = f"http://127.0.0.1:{server.port}/"
    await client.post(url, b"first")
    whole, server.answer = server.answer, answer
    server.keeps_open = True
    with pytest.raises(OutgoingError, match="context deadline exceeded") as caught:
        await client.post(url, b"second", seconds=0.05)
    assert caught.value.timed_out
    server.answer, server.keeps_open = whole, False
    assert (await client.post(url, b"third")).body == b"hi"
    assert server.connections == 2


async def test_a_kept_connection_that_has_ended_is_replaced(server: PlainServer, client: OutgoingClient) -> None:
    url = f"http://127.0.0.1:{server.port}/"
    await client.post(url, b"first")
    server.hangs_up = True
    with pytest.raises(OutgoingError):
        await client.post(url, b"what was sent may have been done")
    server.hangs_up = False
    assert (await client.post(url, b"another")).body == b"hi"


async def test_a_whole_answer_on_a_kept_connection_can_be_too_large(
    server: PlainServer, client: OutgoingClient
) -> None:
    url = f"http://127.0.0.1:{server.port}/"
    await client.get(url)
    with pytest.raises(OutgoingError, match="larger than 1 bytes"):
        await client.get(url, limit=1)


async def test_nobody_listens(client: OutgoingClient) -> None:
    with pytest.raises(OutgoingError) as caught:
        await client.post("http://127.0.0.1:1/", b"")
    assert str(caught.value) == 'Post "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused'


async def test_redirects_are_not_followed(server: PlainServer, client: OutgoingClient) -> None:
    server.answer = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    assert (await client.post(f"http://127.0.0.1:{server.port}/", b"")).status == 302


async def test_it_works_outside_of_tasks(server: PlainServer, client: OutgoingClient) -> None:
    """As requests do, whose coroutines run without a Task until they first wait."""
    loop = asyncio.get_running_loop()
    for _ in range(2):  # on a new connection, and on a kept one
        answer: asyncio.Future[Answer] = loop.create_future()
        call: Any = client.post(f"http://127.0.0.1:{server.port}/", b"")
        loop.call_soon(start, call, loop, answer.set_result, answer.set_exception)
        assert (await answer).status == 200
    assert server.connections == 1


@pytest.mark.parametrize(
    ("given", "asked"),
    [("", "/"), ("/", "/"), ("check", "/check"), ("//check", "/check"), ("/a/../b//c/", "/b/c")],
)
def test_paths_of_webhooks_are_plain(given: str, asked: str) -> None:
    """controller-runtime's envtest registers ``//path``, which a Go server redirects and no webhook call follows."""
    assert plain_path(given) == asked


def gzipped(body: bytes) -> bytes:
    packed = gzip.compress(body)
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(packed), packed)


async def test_answers_may_be_compressed(server: PlainServer, client: OutgoingClient) -> None:
    for body in (b"hi", b"x" * 3_000_000, b""):
        server.answer = gzipped(body)
        answer = await client.post(f"http://127.0.0.1:{server.port}/", b"{}")
        assert answer.body == body
    assert all(b"\r\nAccept-Encoding: gzip\r\n" in head for head in server.requests)


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"plain", "gzip: invalid header"),
        (gzip.compress(b"abc" * 1000, mtime=0)[:20], "unexpected EOF"),
        (gzip.compress(b"abc", mtime=0)[:-8] + bytes(8), "gzip: invalid checksum"),
    ],
)
async def test_what_is_no_gzip(server: PlainServer, client: OutgoingClient, packed: bytes, why: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    server.answer = head + packed
    with pytest.raises(OutgoingError, match=why):
        await client.get(f"http://127.0.0.1:{server.port}/")


async def test_a_compressed_answer_is_not_unpacked_beyond_the_limit(
    server: PlainServer, client: OutgoingClient
) -> None:
    server.answer = gzipped(bytes(50_000_000))
    with pytest.raises(OutgoingError, match="larger than 1000000 bytes"):
        await client.get(f"http://127.0.0.1:{server.port}/", limit=1_000_000)
