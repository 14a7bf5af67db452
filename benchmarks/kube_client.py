"""A small HTTP/1.1 client for loads with thousands of connections: requests one after the other, and watches."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any, cast
from urllib.parse import urlsplit

import orjson

_LONG = 1 << 20
_EVENT = b',"object":{'


class Latencies:
    """Seconds of requests, by what they were."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.failed: dict[str, int] = defaultdict(int)
        self.turned_away = 0
        """Connections that were tried again."""

    def note(self, what: str, seconds: float, status: int) -> None:
        """One request is over."""
        self.seconds[what].append(seconds)
        if status >= 400:
            self.failed[f"{what}: {status}"] += 1

    def share(self, what: str, part: float) -> float:
        """What so many of a kind did not exceed."""
        found = sorted(self.seconds[what])
        return found[min(len(found) - 1, int(len(found) * part))] if found else 0.0


class Api:
    """Connections to one server; as many requests at once as there are connections."""

    def __init__(self, url: str, token: str, connections: int, latencies: Latencies) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n"
        self._free: asyncio.LifoQueue[tuple[asyncio.StreamReader, asyncio.StreamWriter] | None] = asyncio.LifoQueue()
        for _ in range(connections):
            self._free.put_nowait(None)
        self.latencies = latencies

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection."""
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=1 << 24)

    async def call(
        self, what: str, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        """One request: status and answer. Its latency is noted as ``what``, the wait for a connection included."""
        started = time.perf_counter()
        connection = await self._free.get()
        try:
            if connection is not None and connection[0].at_eof():  # the server does not keep what is idle for long
                connection[1].transport.abort()
                connection = None
            while connection is None:
                connection = await self._try_connect()
            status, answer = await self._exchange(*connection, method, path, body, kind)
        except (OSError, asyncio.IncompleteReadError):
            connection = None
            status, answer = 599, {}
        finally:
            self._free.put_nowait(connection)
        self.latencies.note(what, time.perf_counter() - started, status)
        return status, answer

    async def _try_connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection; none, after a while, where the server has too many new ones."""
        try:
            return await self.connect()
        except OSError:
            self.latencies.turned_away += 1
            await asyncio.sleep(random.uniform(0.8, 1.6))
            return None

    async def items(self, what: str, path: str) -> AsyncIterator[Any]:
        """All objects, page by page."""
        token = ""
        while True:
            status, page = await self.call(what, "GET", f"{path}?limit=250&continue={token}")
            if status != 200:
                raise SystemExit(f"GET {path}: {status} {page}")
            for item in page["items"]:
                yield item
            token = page["metadata"].get("continue") or ""
            if not token:
                return

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        method: str,
        path: str,
        body: Any,
        kind: str,
    ) -> tuple[int, Any]:
        data = b"" if body is None else orjson.dumps(body)
        typed = f"Content-Type: {kind}\r\nContent-Length: {len(data)}\r\n" if data else ""
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{typed}\r\n".encode() + data)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        answer = await _sized(reader, int(length)) if length else await _chunks(reader)
        return status, orjson.loads(answer) if answer[:1] == b"{" else {}

    async def read_text(self, path: str) -> str:
        """What is no object, such as metrics."""
        reader, writer = await self.connect()
        writer.write(f"GET {path} HTTP/1.1\r\n{self._head}Connection: close\r\n\r\n".encode())
        text = (await reader.read(-1)).decode(errors="replace")
        writer.transport.abort()
        return text

    def close(self) -> None:
        """Let all connections go that are not in use."""
        while not self._free.empty():
            connection = self._free.get_nowait()
            if connection is not None:
                connection[1].transport.abort()

    async def watch(self, path: str, event: Callable[[int], None], opened: Callable[[], None]) -> None:
        """Follow a watch until it ends or this is cancelled; ``event`` is told of how many have come.

        Where a connection is refused or cut off before it has begun, it is tried again after a second or so, as
        client-go does: a server takes only so many new ones at once.
        """
        while not await self._watch_once(path, event, opened):
            self.latencies.turned_away += 1
            await asyncio.sleep(random.uniform(0.8, 1.6))

    async def _watch_once(self, path: str, event: Callable[[int], None], opened: Callable[[], None]) -> bool:
        """Whether there was an answer."""
        request = f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()
        loop = asyncio.get_running_loop()
        try:
            transport, watch = await loop.create_connection(
                lambda: _Watch(request, event, opened), self._host, self._port, ssl=self._tls
            )
        except OSError:
            return False
        try:
            await watch.ended
        finally:
            transport.abort()
        if watch.status:
            self.latencies.failed["watch ended" if watch.status == "200" else f"watch: {watch.status}"] += 1
        return bool(watch.status)


class _Watch(asyncio.Protocol):
    """Counts the events of a watch as they come: streams and coroutines would cost the client more than the server."""

    def __init__(self, request: bytes, event: Callable[[int], None], opened: Callable[[], None]) -> None:
        self._request, self._event, self._opened = request, event, opened
        self._rest = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.status = ""
        """What the server answered; empty until it has."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.WriteTransport, transport).write(self._request)  # uvloop's are no subclasses

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        if not self.status:
            head, end, data = data.partition(b"\r\n\r\n")
            if not end:
                self._rest = head
                return
            self.status = head[9:12].decode()
            if self.status == "200":
                self._opened()
        if count := data.count(_EVENT):
            self._event(count)
        self._rest = data[1 - len(_EVENT) :]  # perhaps the beginning of a mark, never a whole one

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def _sized(reader: asyncio.StreamReader, length: int) -> bytes:
    """A body; a long one is read and dropped, because decoding it would hold up all other clients in this process."""
    if length <= _LONG:
        return await reader.readexactly(length)
    while length:
        data = await reader.read(min(length, _LONG))
        if not data:
            raise asyncio.IncompleteReadError(b"", length)
        length -= len(data)
    return b""


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readexactly(2)
    return b"".join(pieces)
