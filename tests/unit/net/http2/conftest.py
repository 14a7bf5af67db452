"""A client that speaks frames, so that tests can say what no library would."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import hpack
import pytest

from pilothouse.net.http2 import frames
from pilothouse.net.messages import Handler
from pilothouse.net.tls import TlsFiles, build_context

Frame = tuple[int, int, int, bytes]


class FrameClient:
    """The client's side of a connection. Fields are coded by an HPACK of others."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder()
        self.seen: list[Frame] = []

    def greet(self, settings: list[tuple[int, int]] | None = None) -> None:
        self.writer.write(frames.PREFACE + frames.settings(settings or []))

    def send(self, kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> None:
        self.writer.write(frames.header(len(payload), kind, flags, stream) + payload)

    def block(self, method: str = "GET", path: str = "/", *fields: tuple[str, str]) -> bytes:
        first = [(":method", method), (":scheme", "https"), (":path", path), (":authority", "example:6443")]
        return self.encode([*first, *fields])

    def encode(self, fields: list[tuple[str, str]]) -> bytes:
        return bytes(self.encoder.encode(fields))

    def ask(
        self, stream: int, method: str = "GET", path: str = "/", *fields: tuple[str, str], ended: bool = True
    ) -> None:
        flags = frames.END_HEADERS | (frames.END_STREAM if ended else 0)
        self.send(frames.HEADERS, flags, stream, self.block(method, path, *fields))

    async def receive(self) -> Frame:
        high, low, kind, flags, stream = frames.HEADER.unpack(await self.reader.readexactly(9))
        payload = await self.reader.readexactly(high << 8 | low)
        self.seen.append((kind, flags, stream, payload))
        return self.seen[-1]

    async def until(self, kind: int, stream: int | None = None) -> Frame:
        """The next frame of a kind."""
        while True:
            frame = await self.receive()
            if frame[0] == kind and stream in (None, frame[2]) and not (kind == frames.SETTINGS and frame[1]):
                return frame

    async def answer(self, stream: int) -> tuple[dict[str, str], bytes]:
        """Head and body of the answer on a stream (others in between are lost); RST_STREAM is a ConnectionError."""
        head: dict[str, str] = {}
        body = b""
        while True:
            kind, flags, number, payload = await self.receive()
            if kind == frames.HEADERS:
                decoded = dict(self.decoder.decode(payload))
                if number == stream:
                    head = head | decoded
            if number != stream:
                continue
            if kind == frames.DATA:
                body += payload
            if kind == frames.RST_STREAM:
                raise ConnectionError(int.from_bytes(payload, "big"))
            if kind in (frames.HEADERS, frames.DATA) and flags & frames.END_STREAM:
                return head, body

    async def synchronize(self) -> None:
        """Return once the server has read all that was sent."""
        self.send(frames.PING, payload=b"all read")
        while (await self.until(frames.PING))[3] != b"all read":
            pass

    async def farewell(self) -> int:
        """The code with which the server ends the connection, once it is closed."""
        code = int.from_bytes((await self.until(frames.GOAWAY))[3][4:8], "big")
        while await self.reader.read(1 << 16):
            pass
        return code


Connect = Callable[..., Awaitable[FrameClient]]


@pytest.fixture
def tls_files(authority: Any) -> TlsFiles:
    return TlsFiles(*authority.issue("server", "127.0.0.1"))


def client_context(*protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    return context


@pytest.fixture
def connect(serve: Any, tls_files: TlsFiles) -> Connect:
    """Serve a handler and connect to it by HTTP/2; `running` of the client is the server."""
    context = build_context(tls_files)

    async def start(handler: Handler, greet: bool = True, **options: Any) -> Any:
        running = await serve(handler, tls=lambda: context, **options)
        client = await running.dial(ssl=client_context("h2"))
        frame_client = FrameClient(client.reader, client.writer)
        if greet:
            frame_client.greet()
            await frame_client.until(frames.SETTINGS)
        frame_client.running = running  # type: ignore[attr-defined]
        return frame_client

    return start
