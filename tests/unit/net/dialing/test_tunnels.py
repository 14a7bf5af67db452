"""Ways through proxies: HTTP's CONNECT over TCP, TLS and Unix sockets, and konnectivity."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from pilothouse.credentials.pki import ensure_pki
from pilothouse.net.client import HttpClient, Outbound
from pilothouse.net.dialing import Dialer, DialError, Target, Tls
from pilothouse.net.dialing import konnectivity as k
from pilothouse.net.dialing.konnectivity import KonnectivityRoute
from pilothouse.net.dialing.tunnels import HttpConnectRoute, HttpProxy

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000


class Proxy:
    """Connects where it is told to, if it wants to."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.refusal = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split(b"\r\n")[0])
        if self.refusal:
            writer.write(self.refusal)
            writer.close()
            return
        host, _, port = head.split(b" ")[1].decode().rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


@pytest.fixture
async def origin() -> AsyncIterator[Target]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER)
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield Target("127.0.0.1", server.sockets[0].getsockname()[1])
    server.close()


async def fetch(dialer: Dialer, target: Target) -> int:
    client = HttpClient(dialer)
    reply = await client.send(target, Outbound("GET", b"/", [(b"Host", b"x")]))
    body = await reply.read(1 << 20)
    await reply.close()
    await client.close()
    await dialer.close()
    return len(body)


@pytest.mark.parametrize("way", ["tcp", "tls", "unix"])
async def test_connect(origin: Target, tmp_path: Path, way: str) -> None:
    proxy, tls, context = Proxy(), None, None
    if way == "tls":
        pki = ensure_pki(tmp_path, dns_names=("localhost",), ip_addresses=("127.0.0.1",))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.serving_cert, pki.serving_key)
        context.load_verify_locations(pki.ca_cert)
        context.verify_mode = ssl.CERT_REQUIRED
        tls = Tls(authorities_file=str(pki.ca_cert), cert_file=str(pki.admin_cert), key_file=str(pki.admin_key))
    path = str(tmp_path / "proxy.sock") if way == "unix" else ""
    if path:
        server: asyncio.Server = await asyncio.start_unix_server(proxy.serve, path)
        where = HttpProxy(path=path)
    else:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, ssl=context)
        where = HttpProxy("127.0.0.1", server.sockets[0].getsockname()[1], tls)
    assert await fetch(Dialer(HttpConnectRoute(where)), origin) == 500_000
    assert proxy.asked == [f"CONNECT {origin.authority} HTTP/1.1".encode()]
    server.close()


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "proxy error from .* while dialing .*, code 403: 403 Forbidden"),
        (b"HTTP/1.1 200 OK\r\n\r\nearly", "unexpected 5 bytes of buffered data from CONNECT proxy"),
        (b"nonsense\r\n\r\n", "reading HTTP response from CONNECT to .* failed"),
        (b"HTTP/1.1 2", "failed: unexpected EOF"),
    ],
)
async def test_proxies_that_refuse(origin: Target, refusal: bytes, words: str) -> None:
    proxy = Proxy()
    proxy.refusal = refusal
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    where = HttpProxy("127.0.0.1", server.sockets[0].getsockname()[1])
    with pytest.raises(DialError, match=words):
        await fetch(Dialer(HttpConnectRoute(where)), origin)
    server.close()


async def test_no_proxy(origin: Target, tmp_path: Path) -> None:
    with pytest.raises(DialError, match=r"dial unix .*/none\.sock: connect: no such file or directory"):
        await fetch(Dialer(HttpConnectRoute(HttpProxy(path=str(tmp_path / "none.sock")))), origin)


class Konnectivity(grpc.GenericRpcHandler):  # type: ignore[misc]
    """The server's side of the packets, connecting by itself in place of agents."""

    def __init__(self, refusal: bytes = b"") -> None:
        self.refusal = refusal
        self.closed = asyncio.Event()

    def service(self, details: Any) -> Any:
        return grpc.stream_stream_rpc_method_handler(self.proxy)

    async def proxy(self, packets: AsyncIterator[bytes], context: Any) -> None:
        _, dial = k.decode_packet(await anext(packets))
        answer: k.Fields = {1: self.refusal, 2: 7, 3: dial[3]}
        await context.write(k.encode_packet(k.DIAL_RESPONSE, answer))
        if self.refusal:
            return
        address = dial[2]
        assert isinstance(address, bytes)
        host, _, port = address.decode().rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))

        async def back() -> None:
            while piece := await reader.read(65536):
                await context.write(k.encode_packet(k.DATA, {1: 7, 3: piece}))

        returning = asyncio.ensure_future(back())
        try:
            async for packet in packets:
                kind, fields = k.decode_packet(packet)
                data = fields.get(3, b"")
                if kind == k.CLOSE_REQUEST:
                    self.closed.set()
                    break
                assert kind == k.DATA and fields[1] == 7 and isinstance(data, bytes)
                writer.write(data)
        finally:
            returning.cancel()
            writer.close()


@pytest.fixture
async def konnectivity(tmp_path: Path) -> AsyncIterator[Callable[[Konnectivity], Any]]:
    server = grpc.aio.server()
    path = str(tmp_path / "k.sock")

    async def start(handler: Konnectivity) -> str:
        server.add_generic_rpc_handlers((handler,))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        return path

    yield start
    await server.stop(None)


async def test_konnectivity(origin: Target, konnectivity: Any) -> None:
    handler = Konnectivity()
    assert await fetch(Dialer(KonnectivityRoute(await konnectivity(handler))), origin) == 500_000


async def test_konnectivity_that_refuses(origin: Target, konnectivity: Any) -> None:
    with pytest.raises(DialError, match="no agent"):
        await fetch(Dialer(KonnectivityRoute(await konnectivity(Konnectivity(b"no agent")))), origin)


def test_packets() -> None:
    assert k.decode_packet(k.encode_packet(k.DATA, {1: 300, 3: b"x"})) == (k.DATA, {1: 300, 3: b"x"})
    for nonsense in (b"\xff", b"\x0a\x05a", b"\x09"):
        with pytest.raises(ValueError, match="malformed"):
            k.decode_packet(nonsense)
