"""Ways through a konnectivity server (apiserver-network-proxy), spoken to by gRPC over a Unix socket.

Each connection is a stream of packets of its own: a dial request and its answer, then data both ways, then a close. A
pair of sockets stands in for it. ``grpcio`` is loaded with the first connection.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from pilothouse.net.dialing.failures import DialError, join_host_port
from pilothouse.net.dialing.guard import Guard

DIAL_REQUEST, DIAL_RESPONSE, CLOSE_REQUEST, CLOSE_RESPONSE, DATA, DIAL_CLOSE = 0, 1, 2, 3, 4, 5
_FIELD_OF: Final = {DIAL_REQUEST: 2, DIAL_RESPONSE: 3, DATA: 4, CLOSE_REQUEST: 5, CLOSE_RESPONSE: 6, DIAL_CLOSE: 7}
_METHOD: Final = "/ProxyService/Proxy"
_READ: Final = 64 * 1024
Fields = dict[int, int | bytes]


def encode_packet(kind: int, fields: Fields) -> bytes:
    """A packet: its type, and the message that goes with it."""
    body = encode_fields(fields)
    return encode_fields({1: kind}) + _key(_FIELD_OF[kind], 2) + _varint(len(body)) + body


def decode_packet(data: bytes) -> tuple[int, Fields]:
    """Type and message of a packet. Raises ValueError."""
    outer = decode_fields(data)
    kind = outer.get(1, 0)
    inner = outer.get(_FIELD_OF.get(int(kind) if isinstance(kind, int) else -1, 0), b"")
    if not isinstance(kind, int) or not isinstance(inner, bytes):
        raise ValueError("malformed packet")
    return kind, decode_fields(inner)


def encode_fields(fields: Fields) -> bytes:
    """A protobuf message of numbers and bytes; empty ones are left out."""
    out = b""
    for number, value in fields.items():
        if isinstance(value, int):
            out += _key(number, 0) + _varint(value) if value else b""
        elif value:
            out += _key(number, 2) + _varint(len(value)) + value
    return out


def decode_fields(data: bytes) -> Fields:
    """The latest value of each field. Raises ValueError."""
    fields: Fields = {}
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if key & 7 == 0:
            fields[key >> 3] = value
        elif key & 7 == 2 and at + value <= len(data):
            fields[key >> 3] = data[at : at + value]
            at += value
        else:
            raise ValueError("malformed packet")
    return fields


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("malformed packet")


class KonnectivityRoute:
    """Every connection is made by the agents behind a konnectivity server."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._channel: Any = None
        self._carrying: set[asyncio.Task[None]] = set()

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        try:
            import grpc  # type: ignore[import-untyped]
        except ImportError:
            raise DialError("the package grpcio is missing (pip install 'pilothouse[grpc]')") from None
        if self._channel is None:
            options = [("grpc.default_authority", "localhost")]
            self._channel = grpc.aio.insecure_channel(f"unix:{self._path}", options)
        call = self._channel.stream_stream(_METHOD)()
        try:
            connection = await _dial(call, join_host_port(host, port))
        except grpc.aio.AioRpcError as error:
            raise DialError(f"rpc error: code = {error.code().name} desc = {error.details()}") from None
        except BaseException:
            call.cancel()
            raise
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        self._keep(_carry(call, connection, far))
        return near

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def close(self) -> None:
        """End all connections, and the one to the server."""
        for task in tuple(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()


async def _dial(call: Any, address: str) -> int:
    """Have the other side connect; the number of the connection. Raises DialError."""
    number = random.getrandbits(62) | 1
    await call.write(encode_packet(DIAL_REQUEST, {1: b"tcp", 2: address.encode(), 3: number}))
    while True:
        packet = await call.read()
        if not isinstance(packet, bytes):
            raise DialError("EOF")
        try:
            kind, fields = decode_packet(packet)
        except ValueError as error:
            raise DialError(str(error)) from None
        if kind == DIAL_RESPONSE and fields.get(3) == number:
            refusal, connection = fields.get(1, b""), fields.get(2, 0)
            if refusal or not isinstance(connection, int):
                shown = refusal.decode("utf-8", "replace") if isinstance(refusal, bytes) else ""
                call.cancel()
                raise DialError(shown or "malformed packet")
            return connection
        if kind in (DIAL_CLOSE, CLOSE_RESPONSE):
            call.cancel()
            raise DialError("tunnel closed before the dial was answered")


async def _carry(call: Any, connection: int, far: socket.socket) -> None:
    """Data both ways until either side ends."""
    outward = asyncio.ensure_future(_send(call, connection, far))
    inward = asyncio.ensure_future(_receive(call, far))
    try:
        await asyncio.wait((outward, inward), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for side in (outward, inward):
            side.cancel()
        await asyncio.gather(outward, inward, return_exceptions=True)
        far.close()
        call.cancel()


async def _send(call: Any, connection: int, far: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while piece := await loop.sock_recv(far, _READ):
        await call.write(encode_packet(DATA, {1: connection, 3: piece}))
    with suppress(Exception):
        await call.write(encode_packet(CLOSE_REQUEST, {1: connection}))


async def _receive(call: Any, far: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        packet = await call.read()
        if not isinstance(packet, bytes):
            return
        kind, fields = decode_packet(packet)
        data = fields.get(3, b"")
        if kind == DATA and isinstance(data, bytes):
            await loop.sock_sendall(far, data)
        elif kind in (CLOSE_REQUEST, CLOSE_RESPONSE):
            return
