"""The way to one gRPC server: connected when somebody calls, and again after a connection was lost.

All who call while there is no connection wait for the same attempt. One that failed a moment ago stands for those that
would follow at once. A connection is one when the server has said something: who accepts and then is silent (a process
that was stopped) has no calls sent to it, so that they can go elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from pilothouse.net.busy_polling import SERVER_SECONDS, BusyPolling
from pilothouse.net.dialing import Dialer, DialError, Target, Tls
from pilothouse.net.dialing.failures import explain_connecting
from pilothouse.net.grpc.calls import StreamCall, UnaryCall, framed
from pilothouse.net.grpc.connection import GrpcConnection
from pilothouse.net.grpc.failures import RpcError
from pilothouse.net.http2.hpack import encode_integer, encode_string

_REST_SECONDS: Final = 0.1
_DIAL_SECONDS: Final = 10.0
_AGENT: Final = b"pilothouse"
_POST: Final = b"\x83"
_HTTP: Final = b"\x86"
_HTTPS: Final = b"\x87"
_PATH_NAME, _AUTHORITY_NAME, _TYPE_NAME, _AGENT_NAME = 4, 1, 31, 58
_TIMEOUT: Final = b"\0" + encode_string(b"grpc-timeout")
_LARGEST_TIMEOUT: Final = 99_999_999
_KNOWN_TIMES: Final = 64

Metadata = Sequence[tuple[bytes, bytes]]


class Channel:
    """Calls to one server, by an address or (``socket``) the path of a Unix socket."""

    def __init__(self, target: Target, dialer: Dialer | None = None, socket: str = "") -> None:
        self._target, self._socket = target, socket
        self._dialer = dialer or Dialer()
        self._connection: GrpcConnection | None = None
        self._dialing: asyncio.Task[GrpcConnection] | None = None
        self._failure: tuple[float, str] | None = None
        self._heads: dict[tuple[str, Metadata], bytes] = {}
        self._timed_heads: dict[tuple[str, float], bytes] = {}
        self._pollings: dict[str, BusyPolling] = {}
        """By method: what looks something up is done sooner than what has to reach a disk."""
        self._closed = False

    async def unary(self, method: str, message: bytes, seconds: float) -> bytes:
        """The answer to a message. Raises RpcError."""
        connection = self._usable() or await self._connected(seconds)
        while connection.is_full:
            await connection.wait_for_room()
            connection = self._usable() or await self._connected(seconds)
        call = UnaryCall(asyncio.get_running_loop(), seconds)
        polling = self._pollings.get(method) or self._polling(method)
        connection.begin(call, self._timed_head(method, seconds), framed(message))
        polling.expect()
        try:
            answer = await call.answer
            polling.came()
            return answer
        except asyncio.CancelledError:
            connection.cancel(call, RpcError("CANCELLED", "the call was cancelled"))
            raise
        finally:
            del call  # it has the error, whose traceback has this frame and all before it

    async def stream(self, method: str, message: bytes, metadata: Metadata = (), seconds: float = 30.0) -> StreamCall:
        """A stream that begins with a message; ``seconds`` bound connecting alone. Raises RpcError."""
        connection = self._usable() or await self._connected(seconds)

        def send(call: StreamCall, data: bytes) -> None:
            connection.send(call, data)

        def cancel(call: StreamCall, error: RpcError) -> None:
            connection.cancel(call, error)

        call = StreamCall(send, cancel)
        connection.begin(call, self._head(method, metadata), framed(message))
        return call

    async def connect(self, seconds: float) -> None:
        """Have a connection. Raises RpcError."""
        if self._usable() is None:
            await self._connected(seconds)

    async def close(self) -> None:
        """End the connection and all calls on it."""
        self._closed = True
        if self._dialing is not None:
            self._dialing.cancel()
            await asyncio.gather(self._dialing, return_exceptions=True)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            await connection.closed

    def _usable(self) -> GrpcConnection | None:
        connection = self._connection
        return None if connection is None or connection.is_leaving else connection

    async def _connected(self, seconds: float) -> GrpcConnection:
        if self._closed:
            raise RpcError("CANCELLED", "the channel is closed", sent=False)
        if self._failure is not None and time.monotonic() < self._failure[0]:
            raise RpcError("UNAVAILABLE", self._failure[1], sent=False)
        if self._dialing is None:
            self._dialing = asyncio.get_running_loop().create_task(self._dial())
        dialing = self._dialing
        await asyncio.wait((dialing,), timeout=seconds)
        if not dialing.done():
            raise RpcError("DEADLINE_EXCEEDED", "context deadline exceeded", sent=False)
        if dialing.cancelled():
            raise RpcError("CANCELLED", "the channel is closed", sent=False)
        return dialing.result()

    async def _dial(self) -> GrpcConnection:
        try:
            connection = await self._open()
            try:
                refusal = await asyncio.wait_for(connection.greeted, _DIAL_SECONDS)
            except BaseException:
                connection.close()
                raise
        except DialError as error:
            raise self._failed(f"transport: Error while dialing: {error}") from None
        except TimeoutError:
            raise self._failed("error reading server preface: context deadline exceeded") from None
        finally:
            self._dialing = None
        if refusal:
            raise self._failed(refusal)
        self._failure = None
        self._connection = connection
        return connection

    def _failed(self, why: str) -> RpcError:
        """Note that there is no connection for the moment."""
        text = f'connection error: desc = "{why}"'
        self._failure = time.monotonic() + _REST_SECONDS, text
        return RpcError("UNAVAILABLE", text, sent=False)

    async def _open(self) -> GrpcConnection:
        if not self._socket:
            return (await self._dialer.connect(self._target, GrpcConnection, seconds=_DIAL_SECONDS))[1]
        loop = asyncio.get_running_loop()
        try:
            return (await loop.create_unix_connection(GrpcConnection, self._socket))[1]
        except OSError as error:
            raise DialError(explain_connecting(error, "unix", self._socket)) from None

    def _polling(self, method: str) -> BusyPolling:
        polling = self._pollings[method] = BusyPolling(asyncio.get_running_loop(), SERVER_SECONDS)
        return polling

    def _head(self, method: str, metadata: Metadata) -> bytes:
        head = self._heads.get((method, metadata))
        if head is None:
            head = self._heads[method, metadata] = self._make_head(method, metadata)
        return head

    def _timed_head(self, method: str, seconds: float) -> bytes:
        """The head of a call that the server may give up too; most have one of a few bounds."""
        head = self._timed_heads.get((method, seconds))
        if head is None:
            if len(self._timed_heads) >= _KNOWN_TIMES:
                self._timed_heads.clear()
            timeout = min(int(seconds * 1000) + 1, _LARGEST_TIMEOUT)
            head = self._head(method, ()) + _TIMEOUT + encode_string(b"%dm" % timeout)
            self._timed_heads[method, seconds] = head
        return head

    def _make_head(self, method: str, metadata: Metadata) -> bytes:
        authority = "localhost" if self._socket else self._target.authority
        named = ((_PATH_NAME, method.encode()), (_AUTHORITY_NAME, authority.encode()))
        rest = ((_TYPE_NAME, b"application/grpc"), (_AGENT_NAME, _AGENT))
        other = ((b"te", b"trailers"), *metadata)
        return b"".join(
            (
                _POST,
                _HTTPS if self._target.tls is not None else _HTTP,
                *(encode_integer(index, 4) + encode_string(value) for index, value in (*named, *rest)),
                *(b"\0" + encode_string(name) + encode_string(value) for name, value in other),
            )
        )


def tls_for_grpc(authorities_file: str = "", cert_file: str = "", key_file: str = "") -> Tls:
    """TLS as gRPC wants it: HTTP/2 agreed on in the handshake."""
    return Tls(authorities_file=authorities_file, cert_file=cert_file, key_file=key_file, protocols=("h2",))
