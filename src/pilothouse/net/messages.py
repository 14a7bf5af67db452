"""What travels between the HTTP server and its handlers: Request, Connection, Response.

A handler is `async def handler(request) -> Response`.  Upper layers may subclass Request (more slots, the same
constructor) and pass the subclass to the server as `request_type`.
"""

import _ssl
import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from typing import Any

from pilothouse.net.request_body import (
    BodyTooLarge,
    ClientDisconnected,
    CrowdedOut,
    MalformedBody,
    RequestBody,
    Trailers,
)
from pilothouse.net.request_head import HeaderBlock, RequestLine
from pilothouse.net.turns import WriteTurns
from pilothouse.net.writing import BodyWriter

__all__ = [
    "BodyTooLarge",
    "BodyWriter",
    "ClientDisconnected",
    "Connection",
    "CrowdedOut",
    "Handler",
    "MalformedBody",
    "Request",
    "Response",
    "UnsafeHeader",
    "Upgraded",
]

DEFAULT_BODY_LIMIT = 3 * 1024 * 1024


class UnsafeHeader(ValueError):
    """A response header contains a line break."""


class Connection:
    """One client connection: who is at the other end, and a place for upper layers to remember things about it."""

    __slots__ = ("_certificate", "_transport", "authenticated", "peer", "reads", "scheme", "state", "turns")

    def __init__(self, transport: asyncio.Transport, turns: WriteTurns | None = None) -> None:
        self._transport = transport
        self.turns = turns or WriteTurns()
        """Where those are due who have something for this connection as for many others."""
        self._certificate: bytes | bool | None = False
        peer = transport.get_extra_info("peername")
        self.peer: tuple[str, int] = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else ("", 0)
        self.scheme = "http" if transport.get_extra_info("ssl_object") is None else "https"
        self.authenticated = False
        self.reads = False
        """Whether its client has been given an object: then work may begin for it before it is known who asks."""
        self.state: dict[Any, Any] = {}

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS session, None on a plain connection."""
        return self._transport.get_extra_info("ssl_object")  # type: ignore[no-any-return]

    @property
    def peer_certificate(self) -> bytes | None:
        """The client's certificate in DER, None if it sent none."""
        if isinstance(self._certificate, bool):
            tls = self.tls
            self._certificate = None if tls is None else tls.getpeercert(binary_form=True)
        return self._certificate

    @property
    def peer_chain(self) -> list[bytes]:
        """The client's certificate and the intermediates it sent, in DER; not verified."""
        leaf = self.peer_certificate
        if leaf is None:
            return []
        session = getattr(self.tls, "_sslobj", None)
        if session is None or not hasattr(session, "get_unverified_chain"):
            return [leaf]
        chain = session.get_unverified_chain() or ()
        return [item if isinstance(item, bytes) else item.public_bytes(_ssl.ENCODING_DER) for item in chain] or [leaf]

    def close(self) -> None:
        """Close after what is already written has been sent."""
        self._transport.close()


class Request:
    """One request. `headers` has lower-case names, the first value of each, and is the handler's to change."""

    __slots__ = (
        "_body",
        "_on_disconnect",
        "_repeated",
        "block",
        "connection",
        "deadline",
        "disconnected",
        "has_body",
        "headers",
        "host",
        "http_minor",
        "keep_alive",
        "line",
        "method",
        "path",
        "query",
        "raw_path",
        "target",
        "timed_out",
    )

    def __init__(
        self,
        connection: Connection,
        line: RequestLine,
        headers: HeaderBlock,
        keep_alive: bool,
        body: RequestBody | None,
    ) -> None:
        self.connection = connection
        self.line = line
        self.block = headers
        self.method = line.method
        self.target = line.target
        self.path = line.path
        self.raw_path = line.raw_path
        self.query = line.query
        self.http_minor = line.minor
        self.headers = headers.values.copy()
        self.host = headers.host if line.host is None else line.host
        self.keep_alive = keep_alive
        # Loop time after which the server cancels the handler if it is still waiting; set by a filter.
        self.deadline: float | None = None
        self.timed_out = False
        self.disconnected = False
        self._repeated = headers.repeated
        self._body = body
        self.has_body = body is not None
        """Whether a body came with the request, or is still coming."""
        self._on_disconnect: list[Callable[[], object]] | None = None

    def header_values(self, name: bytes) -> list[bytes]:
        """All values of a header, in order."""
        if name in self._repeated and name in self.headers:
            return list(self._repeated[name])
        value = self.headers.get(name)
        return [] if value is None else [value]

    def header_pairs(self) -> list[tuple[bytes, bytes]]:
        """All headers with all their values."""
        if not self._repeated:
            return list(self.headers.items())
        return [(name, value) for name in self.headers for value in self.header_values(name)]

    def replace_header(self, name: bytes, value: bytes) -> None:
        """Have this one value of a header, for whoever looks at the request from now on."""
        self.headers[name] = value
        if name in self._repeated:
            # The dict of repeated headers belongs to the parsed block, which other requests share.
            self._repeated = {key: values for key, values in self._repeated.items() if key != name}

    @property
    def asks_for_websocket(self) -> bool:
        """The client wants to go on as a WebSocket."""
        if self.headers.get(b"upgrade", b"").lower() != b"websocket":
            return False
        return any(b"upgrade" in value.lower() for value in self.header_values(b"connection"))

    @property
    def trailers(self) -> Trailers:
        """What came after the body, once that is complete."""
        return () if self._body is None else self._body.trailers

    def arrived_body(self, limit: int) -> bytes | None:
        """What ``body`` gives, where it would not have to wait; None where only that can tell."""
        return None if self._body is None else self._body.arrived(limit)

    async def body(self, limit: int = DEFAULT_BODY_LIMIT) -> bytes:
        """The whole body. Raises BodyTooLarge, MalformedBody or ClientDisconnected."""
        if self._body is None:
            return b""
        return await self._body.read(limit)

    async def body_pieces(self) -> AsyncIterator[bytes]:
        """The body piece by piece, with back-pressure and without a limit."""
        if self._body is not None:
            async for piece in self._body.pieces():
                yield piece

    def on_disconnect(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the client goes away before the answer is complete (at once if it already has)."""
        if self.disconnected:
            callback()
        elif self._on_disconnect is None:
            self._on_disconnect = [callback]
        else:
            self._on_disconnect.append(callback)

    def note_answered(self) -> None:
        """For the server: the answer is complete. Nobody is called back any more.

        Who wanted to be called knows the request, and with it its body: in a cycle both would outlast the answer.
        """
        self._on_disconnect = None

    def note_disconnect(self) -> None:
        """For the server: the client has gone."""
        self.disconnected = True
        callbacks, self._on_disconnect = self._on_disconnect, None
        for callback in callbacks or ():
            callback()


class Upgraded(asyncio.Protocol):
    """What may take over a connection after a 101, and wants to know more of the server than a plain Protocol would."""

    def drain_server(self) -> None:
        """The server stops. What is not ended now is closed once all requests are done."""


class Response:
    """One answer, its body in one of four forms.

    body     the bytes themselves
    parts    an iterable of bytes, `length` bytes in all, or None where that is not known before they are made; taken in
             batches, as fast as the client reads
    stream   called with a BodyWriter once the head is on its way; the answer ends when it returns. Where `length` is
             given, exactly so many bytes are written
    upgrade  called with the transport and the bytes already read beyond the request, after a 101 was sent; the
             protocol it returns gets what happens to the connection from then on, beginning with `connection_made`

    `close` ends the connection after the answer, with `Connection: close`.
    """

    __slots__ = ("body", "close", "content_type", "headers", "length", "parts", "status", "stream", "upgrade")

    def __init__(
        self,
        status: int = 200,
        body: bytes = b"",
        content_type: bytes = b"application/json",
        headers: list[tuple[bytes, bytes]] | None = None,
        *,
        parts: Iterable[bytes] | None = None,
        length: int | None = 0,
        stream: Callable[[BodyWriter], Awaitable[None]] | None = None,
        upgrade: Callable[[asyncio.Transport, bytes], asyncio.Protocol] | None = None,
        close: bool = False,
    ) -> None:
        self.status = status
        self.body = body
        self.content_type = content_type
        self.headers: list[tuple[bytes, bytes]] = [] if headers is None else headers
        self.parts = parts
        self.length = length
        self.stream = stream
        self.upgrade = upgrade
        self.close = close


Handler = Callable[[Any], Coroutine[Any, Any, Response]]
