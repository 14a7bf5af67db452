"""The event loop is never blocked by a request, and nothing is left running after the stop."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from blockbuster import BlockingError, blockbuster_ctx

from pilothouse.testing.in_process import InProcessServer

MAPS = "/api/v1/namespaces/default/configmaps"
JSON = "application/json"


class Client:
    """A connection that is served by the same loop as the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, method: str, path: str, body: Any = None, kind: str = JSON, accept: str = JSON) -> int:
        """Send a request and read the head of its answer; the status."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nContent-Length: {len(data)}\r\n"
        self._writer.write(f"{head}Content-Type: {kind}\r\n\r\n".encode() + data)
        self._head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        return int(self._head[9:12])

    async def call(self, *request: Any, **more: Any) -> tuple[int, bytes]:
        """One request with its whole answer."""
        status = await self.send(*request, **more)
        if b"content-length: " in self._head:
            length = int(self._head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return status, await self._reader.readexactly(length)
        body = b""
        while piece := await self.chunk():
            body += piece
        return status, body

    async def chunk(self) -> bytes:
        """The next piece of a streamed answer; empty at its end."""
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        return (await self._reader.readexactly(size + 2))[:-2]

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


async def connect(server: InProcessServer) -> Client:
    context = server.ssl_context()
    return Client(*await asyncio.open_connection("127.0.0.1", server.port, ssl=context, limit=1 << 20))


@pytest.fixture
async def server() -> AsyncIterator[InProcessServer]:
    async with InProcessServer() as running:
        yield running


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def scenario(client: Client, watching: Client) -> None:
    """Every verb, every format, and the pages beside the resources."""
    assert await watching.send("GET", f"{MAPS}?watch=1&resourceVersion=0") == 200
    assert (await client.call("POST", MAPS, config_map("a", data={"x": "1"})))[0] == 201
    await watching.chunk()
    statuses = [
        (await client.call(*request))[0]
        for request in (
            ("GET", f"{MAPS}/a"),
            ("GET", f"{MAPS}/a", None, JSON, "application/yaml"),
            ("GET", MAPS, None, JSON, "application/vnd.kubernetes.protobuf"),
            ("GET", MAPS, None, JSON, "application/json;as=Table;g=meta.k8s.io;v=v1"),
            ("GET", f"{MAPS}?limit=1&resourceVersion=1&resourceVersionMatch=Exact"),
            ("PUT", f"{MAPS}/a", config_map("a", data={"x": "2"})),
            ("PATCH", f"{MAPS}/a", {"data": {"y": "1"}}, "application/merge-patch+json"),
            ("PATCH", f"{MAPS}/a", {"data": {"z": "1"}}, "application/strategic-merge-patch+json"),
            ("PATCH", f"{MAPS}/b?fieldManager=m", config_map("b"), "application/apply-patch+yaml"),
            ("POST", MAPS, b"{", JSON),
            ("DELETE", f"{MAPS}/a"),
            ("DELETE", MAPS),
            ("GET", "/apis"),
            ("GET", "/readyz?verbose"),
            ("GET", "/metrics"),
            ("GET", "/openapi/v3"),
            ("GET", "/api/v1/namespaces/none"),
        )
    ]
    assert statuses == [200, 200, 200, 200, 200, 200, 200, 200, 201, 400, 200, 200, 200, 200, 200, 200, 404]


async def test_requests_do_not_block_the_loop(server: InProcessServer) -> None:
    client, watching = await connect(server), await connect(server)
    # The first round imports what is imported late; files are read then, once in the life of a process.
    await scenario(client, watching)
    again = await connect(server)
    with blockbuster_ctx():
        with pytest.raises(BlockingError):
            time.sleep(0)
        await scenario(client, again)
    for each in (client, watching, again):
        await each.close()


async def test_nothing_is_left_after_the_stop() -> None:
    before = asyncio.all_tasks()
    async with InProcessServer() as server:
        client, watching = await connect(server), await connect(server)
        await scenario(client, watching)
    assert asyncio.all_tasks() == before
    await client.close()
    await watching.close()
    gc.collect()


async def test_clients_that_vanish_leave_nothing_behind(server: InProcessServer) -> None:
    http = server.process.serving.http
    for _ in range(20):
        watching = await connect(server)
        assert await watching.send("GET", f"{MAPS}?watch=1&resourceVersion=0") == 200
        watching._writer.transport.abort()
    async with asyncio.timeout(120):
        while http.connections or http.waiting:
            await asyncio.sleep(0.01)
    assert not server.process.storage.cacher._served
