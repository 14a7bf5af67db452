"""Opening connections: the way there, then TLS.

    Target (host, port, tls, guard) → Route.open → socket → TLS → protocol

A route brings a socket to a host and port: directly, or through a tunnel (``egress``). Names are resolved by whoever
connects, which is the far end of a tunnel; a guard therefore holds for direct connections and for addresses that are
given as such.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from pilothouse.net.dialing.failures import (
    DialError,
    explain_connecting,
    explain_lookup,
    handshake_failure,
    join_host_port,
)
from pilothouse.net.dialing.guard import Guard
from pilothouse.net.dialing.identity import Contexts, Tls
from pilothouse.net.dialing.tls_connection import shake_hands
from pilothouse.net.eager import ensure_task
from pilothouse.net.tls_transport import TlsTransport

NOT_ALLOWED: Final = "address not allowed"
_DIAL_SECONDS: Final = 30.0
_HANDSHAKE_SECONDS: Final = 10.0
P = TypeVar("P", bound=asyncio.Protocol)


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect to, and how. Equal targets share connections."""

    host: str
    port: int
    tls: Tls | None = None
    """None for plain TCP."""
    guard: Guard | None = None
    authority: str = field(init=False, repr=False, compare=False)
    """Host and port as a URL has them."""
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "authority", join_host_port(self.host, self.port))
        object.__setattr__(self, "_hash", hash((self.host, self.port, self.tls, self.guard)))

    def __hash__(self) -> int:
        return self._hash  # asked for with every request


class Route(Protocol):
    """A way to other machines."""

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        """A connected socket that does not block. Raises DialError."""

    async def close(self) -> None:
        """Give up what the route keeps between connections."""


class DirectRoute:
    """No detour. Addresses of a name are tried one after the other."""

    async def open(self, host: str, port: int, guard: Guard | None) -> socket.socket:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise DialError(explain_lookup(error, host)) from None
        except UnicodeError:
            raise DialError(f"dial tcp: lookup {host}: no such host") from None
        if guard is not None and not all(guard(str(address[0])) for *_, address in found):
            raise DialError(NOT_ALLOWED)
        failure: DialError | None = None
        for family, kind, number, _, address in found:
            try:
                return await _connect(loop, family, kind, number, address)
            except OSError as error:
                where = join_host_port(str(address[0]), port)
                failure = failure or DialError(explain_connecting(error, "tcp", where))
        raise failure or DialError(f"dial tcp: lookup {host}: no such host")

    async def close(self) -> None:
        """Nothing is kept."""


DIRECT: Final = DirectRoute()


async def _connect(
    loop: asyncio.AbstractEventLoop, family: int, kind: int, number: int, address: tuple[Any, ...]
) -> socket.socket:
    sock = socket.socket(family, kind, number)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


class Dialer:
    """Makes connections by one route."""

    def __init__(self, route: Route = DIRECT, contexts: Contexts | None = None) -> None:
        self._route = route
        self._contexts = contexts or Contexts()

    async def connect(
        self, target: Target, make_protocol: Callable[[], P], *, seconds: float = _DIAL_SECONDS
    ) -> tuple[asyncio.Transport, P]:
        """Connect, and speak TLS if the target does. Raises DialError."""
        return await self.negotiate(target, lambda _: make_protocol(), seconds=seconds)

    async def negotiate(
        self, target: Target, make_protocol: Callable[[str | None], P], *, seconds: float = _DIAL_SECONDS
    ) -> tuple[asyncio.Transport, P]:
        """The same; the protocol is made for what was agreed on in the handshake. Raises DialError."""
        await ensure_task()
        if target.guard is not None and _is_address(target.host) and not target.guard(target.host):
            raise DialError(NOT_ALLOWED)
        context = await self._context(target.tls)
        try:
            async with asyncio.timeout(seconds):
                sock = await self._route.open(target.host, target.port, target.guard)
        except TimeoutError:
            raise DialError(f"dial tcp {target.authority}: i/o timeout", timed_out=True) from None
        return await _establish(target, sock, context, make_protocol)

    async def _context(self, tls: Tls | None) -> ssl.SSLContext | None:
        try:
            return None if tls is None else await self._contexts.find(tls)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise DialError(f"tls: {error}") from None

    def detour(self, lead: Callable[[Route], Route]) -> Dialer:
        """A dialer with the same identities by a route that is made of this one's."""
        return Dialer(lead(self._route), self._contexts)

    async def close(self) -> None:
        """Give up the route."""
        await self._route.close()


async def _establish(
    target: Target, sock: socket.socket, context: ssl.SSLContext | None, make_protocol: Callable[[str | None], P]
) -> tuple[asyncio.Transport, P]:
    """Make a connection of a socket, which belongs to the loop from here on, whatever comes of it."""
    loop = asyncio.get_running_loop()
    if context is None or target.tls is None:
        return await loop.create_connection(lambda: make_protocol(None), sock=sock)
    name = target.tls.server_name or target.host
    try:
        async with asyncio.timeout(_HANDSHAKE_SECONDS):
            session = await shake_hands(sock, context, name)
    except TimeoutError:
        raise DialError("net/http: TLS handshake timeout", timed_out=True) from None
    except (OSError, ValueError, EOFError) as error:  # ssl.SSLError is an OSError; ValueError: a name that is none
        raise handshake_failure(error, name) from None
    protocol = make_protocol(session.tls.selected_alpn_protocol())
    return TlsTransport(loop, session, protocol), protocol


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
