"""The kubelet's side of exec, attach and port-forward, over SPDY and over WebSocket.

SPDY        one stream each, told apart by the header streamType; port-forward opens pairs with a requestID
WebSocket   one channel each, the first byte of a message; SPDY itself in binary messages for port-forward
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

import orjson

from pilothouse.machinery.go_quote import quote
from pilothouse.net.messages import ClientDisconnected
from pilothouse.net.spdy import SpdySession, SpdyStream, StreamReset
from pilothouse.net.websocket import frame_binary, frame_text
from pilothouse.net.websocket_messages import MessageSocket
from pilothouse.simulation.kubelet_api.commands import Command, Process

Spawn = Callable[[Coroutine[Any, Any, None]], None]
_STATUS_PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_CLOSE: Final = 255
_MOST_UNHEARD: Final = 256 * 1024
_KINDS: Final = ("error", "stdin", "stdout", "stderr", "resize")
_MOST_WAITING: Final = 100


def exit_status(code: int) -> bytes:
    """How a kubelet tells the end of a command."""
    if not code:
        return orjson.dumps({"metadata": {}, "status": "Success"})
    words = f"command terminated with non-zero exit code: exit status {code}"
    details = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    status: dict[str, Any] = {"metadata": {}, "status": "Failure", "message": words, "reason": "NonZeroExitCode"}
    return orjson.dumps({**status, "details": details})


class SpdyCommand:
    """One command over SPDY. It starts when all the streams it was promised are there."""

    def __init__(self, process: Process, wanted: set[str], protocol: str, command: Command, spawn: Spawn) -> None:
        self._process = process
        self._missing = wanted | {"error"}
        self._protocol = protocol
        self._command = command
        self._spawn = spawn
        self._streams: dict[str, SpdyStream] = {}

    def on_stream(self, stream: SpdyStream) -> None:
        """Called by the session."""
        kind = stream.header("streamtype")
        if kind not in _KINDS or kind in self._streams:
            stream.reset()
            return
        self._streams[kind] = stream
        self._missing.discard(kind)
        if not self._missing:
            self._missing = {"never"}
            self._spawn(self._run())

    async def _run(self) -> None:
        streams, process = self._streams, self._process
        process = replace(
            process,
            stdin=streams["stdin"].read if "stdin" in streams else process.stdin,
            stdout=_writer(streams["stdout"]) if "stdout" in streams else process.stdout,
            stderr=_writer(streams["stderr"]) if "stderr" in streams else process.stderr,
            resize=streams["resize"].read if "resize" in streams else process.resize,
        )
        with suppress(StreamReset):
            code = await self._command(process)
            for name in ("stdin", "stdout", "stderr"):
                if name in streams:
                    streams[name].close()
            if self._protocol in _STATUS_PROTOCOLS:
                streams["error"].write(exit_status(code))
            elif code:
                streams["error"].write(f"exit status {code}".encode())
            streams["error"].close()


def _writer(stream: SpdyStream) -> Callable[[bytes], Awaitable[None]]:
    async def write(data: bytes) -> None:
        stream.write(data)
        await stream.drain()

    return write


class Reader(Protocol):
    """What is needed of a stream to read from."""

    async def read(self, most: int) -> bytes: ...


class Writer(Protocol):
    """What is needed of a stream to write to."""

    def write(self, data: bytes) -> object: ...

    async def drain(self) -> object: ...

    def can_write_eof(self) -> bool: ...

    def write_eof(self) -> object: ...

    def close(self) -> object: ...


Connect = Callable[[int], Awaitable[tuple[Reader, Writer]]]
"""Opens a port of a pod. Raises OSError."""


async def connect_locally(port: int) -> tuple[Reader, Writer]:
    """The port of this machine."""
    return await asyncio.open_connection("127.0.0.1", port)


class Echo:
    """Says what it is told, no faster than it is heard."""

    def __init__(self) -> None:
        self._said = bytearray()
        self._ended = False
        self._changed = asyncio.Event()

    def write(self, data: bytes) -> None:
        """Say it."""
        self._said += data
        self._changed.set()

    async def drain(self) -> None:
        """Wait until most of it was heard."""
        while len(self._said) > _MOST_UNHEARD and not self._ended:
            self._changed.clear()
            await self._changed.wait()

    async def read(self, most: int) -> bytes:
        """Hear what was said; nothing at the end."""
        while not self._said and not self._ended:
            self._changed.clear()
            await self._changed.wait()
        heard = bytes(self._said[:most])
        del self._said[:most]
        self._changed.set()
        return heard

    def can_write_eof(self) -> bool:
        """It can end."""
        return True

    def write_eof(self) -> None:
        """Say no more."""
        self._ended = True
        self._changed.set()

    def close(self) -> None:
        """Say no more."""
        self.write_eof()


async def connect_echo(port: int) -> tuple[Reader, Writer]:
    """A port that says what it is told."""
    echo = Echo()
    return echo, echo


class SpdyForwarding:
    """Port-forwarding over SPDY: each pair of streams is a connection to a port."""

    def __init__(self, spawn: Spawn, connect: Connect) -> None:
        self._spawn, self._connect = spawn, connect
        self._waiting: dict[str, SpdyStream] = {}

    def on_stream(self, stream: SpdyStream) -> None:
        """Called by the session."""
        request = stream.header("requestid")
        other = self._waiting.pop(request, None)
        if other is None:
            if len(self._waiting) >= _MOST_WAITING:
                self._waiting = {name: each for name, each in self._waiting.items() if not each.is_over}
            self._waiting[request] = stream
            return
        data, error = (stream, other) if stream.header("streamtype") == "data" else (other, stream)
        self._spawn(self._forward(data, error))

    async def _forward(self, data: SpdyStream, error: SpdyStream) -> None:
        try:
            reader, writer = await self._connect(_port_of(data))
        except OSError as failure:
            error.write(f"an error occurred forwarding: {failure}".encode())
            error.close()
            data.reset()
            return
        with suppress(StreamReset):
            await asyncio.gather(_to_socket(data, writer), _to_stream(reader, data))
        writer.close()
        error.close()


def _port_of(data: SpdyStream) -> int:
    """The port that a stream leads to. Raises OSError."""
    text = data.header("port")
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) < 1 << 16):
        raise OSError(f"unable to parse port {quote(text)}")
    return int(text)


async def _to_socket(data: SpdyStream, writer: Writer) -> None:
    while piece := await data.read():
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def _to_stream(reader: Reader, data: SpdyStream) -> None:
    while piece := await reader.read(65536):
        data.write(piece)
        await data.drain()
    data.close()


class SocketCommand:
    """One command over a WebSocket; ``base64`` protocols put text where others put bytes."""

    def __init__(self, process: Process, wanted: set[str], protocol: str, command: Command) -> None:
        self._process = process
        self._wanted = wanted
        self._base64 = protocol.startswith("base64.") or ".base64." in protocol
        self._status = protocol.startswith(("v5.", "v4."))
        self._command = command
        self._input: asyncio.Queue[bytes] = asyncio.Queue(16)
        self._sizes: asyncio.Queue[bytes] = asyncio.Queue(16)

    async def serve(self, socket: MessageSocket) -> None:
        """Run the command; when the client goes, it ends."""
        process = replace(
            self._process,
            stdin=self._input.get if "stdin" in self._wanted else self._process.stdin,
            stdout=self._writer(socket, 1),
            stderr=self._writer(socket, 2),
            resize=self._sizes.get,
        )
        await process.stdout(b"")
        reading = asyncio.ensure_future(self._read(socket))
        try:
            code = await self._command(process)
            message = exit_status(code) if self._status else (f"exit status {code}".encode() if code else b"")
            await self._writer(socket, 3)(message)
        except ClientDisconnected:
            pass
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    def _writer(self, socket: MessageSocket, channel: int) -> Callable[[bytes], Awaitable[None]]:
        async def write(data: bytes) -> None:
            if self._base64:
                socket.write_frames(frame_text(b"%d%b" % (channel, base64.b64encode(data))))
            else:
                socket.write_frames(frame_binary(bytes((channel,)), data))
            await socket.drain()

        return write

    async def _read(self, socket: MessageSocket) -> None:
        """Until the client goes, or sends as base64 what is none."""
        with suppress(ValueError):
            await self._read_pieces(socket)
        await self._input.put(b"")

    async def _read_pieces(self, socket: MessageSocket) -> None:
        channel = 0
        while (piece := await socket.receive()) is not None:
            data = piece.data
            if piece.first:
                channel = data[0] - ord("0") if self._base64 else data[0]
                data = data[1:]
            if channel == _CLOSE:
                await self._input.put(b"")
            elif channel == 0 and data:
                await self._input.put(base64.b64decode(data) if self._base64 else data)
            elif channel == 4 and data:
                await self._sizes.put(data)


class SocketTransport(asyncio.Transport):
    """What a SPDY session writes to when it lives inside of a WebSocket."""

    def __init__(self, socket: MessageSocket) -> None:
        super().__init__()
        self._socket = socket
        self.reads = asyncio.Event()
        """Set while the session wants more."""
        self.reads.set()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._socket.write_frames(frame_binary(bytes(data)))

    def is_closing(self) -> bool:
        return self._socket.transport.is_closing()

    def close(self) -> None:
        self._socket.close()

    def pause_reading(self) -> None:
        self.reads.clear()

    def resume_reading(self) -> None:
        self.reads.set()


async def serve_tunnel(socket: MessageSocket, on_stream: Callable[[SpdyStream], object]) -> None:
    """Speak SPDY inside of a WebSocket until the client goes."""
    session = SpdySession(is_server=True, on_stream=on_stream)
    transport = SocketTransport(socket)
    session.connection_made(transport)
    try:
        while (piece := await socket.receive()) is not None:
            session.data_received(piece.data)
            await transport.reads.wait()
    finally:
        session.connection_lost(None)
