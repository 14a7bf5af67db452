"""What a request needed is free again when it is over, without the help of the garbage collector.

A large server collects rarely, so whatever ends in a cycle stays for long: clients that cancel, fail or leave at a high
rate would make the process grow.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import hpack
import pytest

from pilothouse.net.http2 import frames
from pilothouse.testing.in_process import InProcessServer

WATCH = "/api/v1/namespaces/default/configmaps?watch=1"
ROUNDS = 20


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer() as running:
        yield running


async def cancelled_watches(server: InProcessServer) -> None:
    """Streams of HTTP/2 that are reset as soon as their watch is open."""
    context = server.ssl_context()
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    encoder = hpack.Encoder()
    writer.write(frames.PREFACE + frames.settings([]))
    for number in range(1, 2 * ROUNDS, 2):
        asked = [(":method", "GET"), (":scheme", "https"), (":path", WATCH), (":authority", "x")]
        writer.write(frames.headers(number, bytes(encoder.encode(asked)), frames.END_STREAM))
        await _answered(reader, number)
        writer.write(frames.rst_stream(number, frames.CANCEL))
    writer.close()
    await writer.wait_closed()


async def _answered(reader: asyncio.StreamReader, stream: int) -> None:
    while True:
        high, low, kind, _, number = frames.HEADER.unpack(await reader.readexactly(9))
        await reader.readexactly(high << 8 | low)
        if kind == frames.HEADERS and number == stream:
            return


async def refused_tokens(server: InProcessServer) -> None:
    """Requests with tokens that nobody knows."""
    context = ssl.create_default_context(cafile=str(server.pki.ca_cert))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    for _ in range(ROUNDS):
        writer.write(b"GET /api HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer nobody\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 401 " in head.split(b"\r\n")[0]
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
    writer.close()
    await writer.wait_closed()


async def dropped_watches(server: InProcessServer) -> None:
    """Connections that are torn down in the middle of a watch."""
    context = server.ssl_context()
    for _ in range(ROUNDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(f"GET {WATCH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()


@pytest.mark.parametrize("visit", [cancelled_watches, refused_tokens, dropped_watches])
async def test_nothing_waits_for_the_collector(
    server: InProcessServer, visit: Callable[[InProcessServer], Awaitable[None]]
) -> None:
    await visit(server)  # what is made once, at first use
    await _settled(server)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        await visit(server)
        await _settled(server)
        gc.collect()
        ours = [type(each) for each in gc.garbage if type(each).__module__.startswith("pilothouse")]
        found = Counter(each.__qualname__ for each in ours)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {name: count for name, count in found.items() if count >= ROUNDS}


async def _settled(server: InProcessServer) -> None:
    http = server.process.serving.http
    async with asyncio.timeout(120):
        while http.connections or http.waiting:
            await asyncio.sleep(0.01)
