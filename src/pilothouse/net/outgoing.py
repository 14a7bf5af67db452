"""Whole documents sent and fetched: calls to webhooks and token issuers, over pooled connections.

``dial`` may send a host name somewhere else than where DNS would, decided whenever a connection is made. Failures are
``OutgoingError`` in the words of Go's client, which users search for. Nothing is followed where an answer redirects.
Answers may come compressed.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pilothouse.net.client import HttpClient, Outbound, Reply
from pilothouse.net.dialing import PLAIN, Dialer, DialError, OutgoingError, Target, Tls
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import BodyTooLarge
from pilothouse.net.unpacking import ACCEPTED, unpack

__all__ = ["PLAIN", "Answer", "Dial", "OutgoingClient", "OutgoingError", "Tls", "plain_path"]

Dial = Callable[[str, int], Awaitable[tuple[str, int] | None]]
"""Host and port of a URL → address and port to connect to, or None for what DNS says. May raise OutgoingError."""
_LIMIT: Final = 32 * 1024 * 1024


@dataclass(slots=True)
class Answer:
    """A whole answer. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class OutgoingClient:
    """Makes requests. Closed once, when the server stops."""

    def __init__(self, dial: Dial | None = None, *, agent: str = "pilothouse", dialer: Dialer | None = None) -> None:
        self._dial = dial
        self._agent = agent
        self._client = HttpClient(dialer)

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        tls: Tls = PLAIN,
        headers: Mapping[str, str] | None = None,
        seconds: float = 30.0,
        limit: int = _LIMIT,
    ) -> Answer:
        """Send a body and read the whole answer. Raises OutgoingError."""
        return await self._call("POST", url, body, tls, headers, seconds, limit)

    async def get(
        self,
        url: str,
        *,
        tls: Tls = PLAIN,
        headers: Mapping[str, str] | None = None,
        seconds: float = 30.0,
        limit: int = _LIMIT,
    ) -> Answer:
        """Read a whole document. Raises OutgoingError."""
        return await self._call("GET", url, b"", tls, headers, seconds, limit)

    async def open(self, url: str, *, tls: Tls = PLAIN, headers: Mapping[str, str] | None = None) -> Reply:
        """Ask for what may never end; whoever asked reads the answer and closes it. Raises OutgoingError."""
        await ensure_task()
        return await self._client.send(*await self._prepare("GET", url, b"", tls, headers or {}))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _call(
        self,
        method: str,
        url: str,
        body: bytes,
        tls: Tls,
        headers: Mapping[str, str] | None,
        seconds: float,
        limit: int,
    ) -> Answer:
        what = f'{method.capitalize()} "{url}"'
        try:
            return await self._exchange(method, url, body, tls, headers or {}, seconds, limit)
        except TimeoutError:
            raise OutgoingError(f"{what}: context deadline exceeded", timed_out=True) from None
        except OutgoingError as error:
            raise OutgoingError(f"{what}: {error}", timed_out=error.timed_out) from None
        except BodyTooLarge:
            raise OutgoingError(f"{what}: the answer is larger than {limit} bytes") from None

    async def _exchange(
        self, method: str, url: str, body: bytes, tls: Tls, headers: Mapping[str, str], seconds: float, limit: int
    ) -> Answer:
        deadline = asyncio.get_running_loop().time() + seconds
        target, outbound = await self._prepare(method, url, body, tls, {"Accept-Encoding": ACCEPTED, **headers})
        reply = await self._client.send_kept(target, outbound, seconds)
        if reply is not None and reply.whole is not None and len(reply.whole) <= limit:
            return await _answer(reply, reply.whole, limit)
        try:
            await ensure_task()
            async with asyncio.timeout_at(deadline):
                reply = reply or await self._client.send(target, outbound)
                return await _answer(reply, await reply.read(limit), limit)
        finally:
            if reply is not None:
                await reply.close()

    async def _prepare(
        self, method: str, url: str, body: bytes, tls: Tls, headers: Mapping[str, str]
    ) -> tuple[Target, Outbound]:
        """Where to connect to, and what to say there."""
        place = locate(url)
        found = None if self._dial is None else await self._dial(place.host, place.port)
        named = tls if tls.server_name or found is None else _named(tls, place.host)
        target = Target(*(found or (place.host, place.port)), named if place.is_secure else None)
        given = {"Host": place.authority, "User-Agent": self._agent, **headers}
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in given.items()]
        return target, Outbound(method, place.path, pairs, body)


async def _answer(reply: Reply, body: bytes, limit: int) -> Answer:
    decoded = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in reply.head.headers}
    if decoded.get("content-encoding", "").lower() == ACCEPTED:
        body = await unpack(body, limit)
    return Answer(reply.status, decoded, body)


class Place(NamedTuple):
    """What a URL says."""

    host: str
    port: int
    authority: str
    """Host and port as they are written, without a user."""
    path: bytes
    is_secure: bool


@lru_cache(maxsize=1024)
def locate(url: str) -> Place:
    """Take a URL apart; the same few are asked for again and again. Raises DialError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise DialError(str(error)) from None
    if parts.scheme not in ("http", "https"):
        raise DialError(f'unsupported protocol scheme "{parts.scheme}"')
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Place(host, port, parts.netloc.rpartition("@")[2], path.encode("utf-8"), parts.scheme == "https")


def plain_path(path: str) -> str:
    """A webhook's path as Go's clients ask for it: dots and doubled slashes are resolved, none is left at the end."""
    return posixpath.normpath(f"/{path.lstrip('/')}")


def _named(tls: Tls, host: str) -> Tls:
    return Tls(tls.authorities, host, tls.cert_file, tls.key_file, tls.insecure, tls.certificate, tls.authorities_file)
