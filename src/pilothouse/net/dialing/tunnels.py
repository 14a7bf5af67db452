"""Ways through a proxy that takes HTTP's CONNECT, over TCP with TLS or a Unix socket.

A tunnel ends in a socket like any other. Where the way to the proxy is encrypted itself, a pair of sockets stands in
for it, and what goes in at one end is carried through the proxy.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Final, cast

from pilothouse.net.client.head import MAX_HEAD, MalformedReply, parse_head
from pilothouse.net.dialing.dialer import Dialer, DirectRoute, Target
from pilothouse.net.dialing.failures import DialError, explain_connecting, join_host_port
from pilothouse.net.dialing.guard import Guard
from pilothouse.net.dialing.identity import Tls
from pilothouse.net.piping import PipeEnd

_READ: Final = 4096


class UnixRoute:
    """To one Unix socket, whatever host is asked for: the way to a proxy on the same machine."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(sock, self._path)
        except OSError as error:
            sock.close()
            raise DialError(explain_connecting(error, "unix", self._path)) from None
        except BaseException:
            sock.close()
            raise
        return sock

    async def close(self) -> None:
        """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """Where a proxy listens: a host and port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    tls: Tls | None = None
    path: str = ""

    @property
    def name(self) -> str:
        return self.path or join_host_port(self.host, self.port)


class HttpConnectRoute:
    """Every connection is made by the proxy, which resolves names too."""

    def __init__(self, proxy: HttpProxy) -> None:
        self._proxy = proxy
        self._dialer = Dialer(UnixRoute(proxy.path) if proxy.path else DirectRoute())

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        proxy, address = self._proxy, join_host_port(host, port)
        target = Target(proxy.host or "localhost", proxy.port, proxy.tls)
        transport, asking = await self._dialer.connect(target, _Asking)
        try:
            transport.write(f"CONNECT {address} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            rest = await asking.granted(proxy.name, address)
            if rest:
                raise DialError(f'unexpected {len(rest)} bytes of buffered data from CONNECT proxy "{proxy.name}"')
            return await _stand_in(transport)
        except BaseException:
            transport.abort()
            raise

    async def close(self) -> None:
        await self._dialer.close()


async def _stand_in(transport: asyncio.Transport) -> socket.socket:
    """A socket whose other end is tied to a connection."""
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    here, there = PipeEnd(), PipeEnd()
    transport.set_protocol(there)
    there.connection_made(transport)
    try:
        await asyncio.get_running_loop().create_connection(lambda: here, sock=far)
    except BaseException:
        near.close()
        raise
    here.tie(there)
    transport.resume_reading()
    return near


class _Asking(asyncio.Protocol):
    """Waits for the proxy's answer and reads nothing beyond it."""

    def __init__(self) -> None:
        self._data = b""
        self._answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if b"\r\n\r\n" in self._data or len(self._data) > MAX_HEAD:
            self._transport.pause_reading()
            self._settle()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()

    def _settle(self) -> None:
        if not self._answered.done():
            self._answered.set_result(self._data)

    async def granted(self, proxy: str, address: str) -> bytes:
        """What came after a 200; raises DialError for anything else."""
        head, end, rest = (await self._answered).partition(b"\r\n\r\n")
        failed = f"reading HTTP response from CONNECT to {address} via proxy {proxy} failed: "
        if not end:
            raise DialError(failed + "unexpected EOF")
        try:
            answer = parse_head(head)
        except MalformedReply as error:
            raise DialError(failed + str(error)) from None
        if answer.status != 200:
            status = f"{answer.status} {answer.reason.decode('latin-1')}".strip()
            raise DialError(f"proxy error from {proxy} while dialing {address}, code {answer.status}: {status}")
        return rest
