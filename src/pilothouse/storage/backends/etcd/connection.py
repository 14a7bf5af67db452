"""Talking to a cluster of etcd members: one channel for each endpoint, one of them preferred until it fails.

A read that finds no answer goes on to the next endpoint, and round again while there is time; a write does so only
where the first endpoint cannot have taken it. A member that neither answers nor refuses is given up when the
connection's keep-alive or the caller's time ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from pilothouse.machinery.spans import Span, current
from pilothouse.net.dialing import Dialer, Target
from pilothouse.net.grpc import Channel, RpcError, StreamCall, tls_for_grpc
from pilothouse.storage.backends.contract import Unavailable, UnusableStore
from pilothouse.storage.backends.etcd.errors import CallFailed

logger = logging.getLogger(__name__)
DIAL_SECONDS: Final = 20.0
READ_SECONDS: Final = 60.0
WRITE_SECONDS: Final = 34.0
"""kube-apiserver's bounds for requests; no call lasts longer."""
_PAUSE_SECONDS: Final = 0.1
"""Between two rounds through all members."""
_NEEDS_LEADER: Final = ((b"hasleader", b"true"),)
"""Ends a stream whose member has lost its cluster, which would otherwise just be silent."""
_TRY_SECONDS: Final = 5.0
"""How long a read waits for one of several members before it asks the next."""


@dataclass(frozen=True, slots=True)
class Transport:
    """Where the members are, and how one proves who one is."""

    servers: tuple[str, ...]
    cafile: str = ""
    certfile: str = ""
    keyfile: str = ""

    @property
    def has_tls_files(self) -> bool:
        return bool(self.cafile or self.certfile or self.keyfile)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one member is: a host and a port, or the path of a Unix socket."""

    host: str
    port: int
    socket: str = ""
    tls: bool = False


def parse_endpoint(server: str) -> Endpoint:
    """An endpoint as flags name it: scheme://host:port, host:port, unix:path. Raises UnusableStore."""
    if server.startswith(("unix:", "unixs:")):
        scheme, _, path = server.partition(":")
        return Endpoint("localhost", 0, path.removeprefix("//"), scheme == "unixs")
    try:
        parts = urlsplit(server if "://" in server else f"//{server}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UnusableStore(f"etcd server {server}: {error}") from None
    if parts.scheme not in ("", "http", "https"):
        raise UnusableStore(f"etcd server {server}: unknown scheme {parts.scheme}")
    return Endpoint(parts.hostname or "", port, tls=parts.scheme == "https")


class Connection:
    """The channels to one cluster. Made complete, opened by its first use."""

    def __init__(self, transport: Transport, dialer: Dialer | None = None) -> None:
        """``dialer`` makes connections; without one they are made directly."""
        if not transport.servers:
            raise UnusableStore("no etcd servers are given")
        self._transport, self._dialer = transport, dialer
        self._channels: list[Channel] = []
        self._preferred = 0
        self._closed = False

    @property
    def servers(self) -> tuple[str, ...]:
        return self._transport.servers

    async def close(self) -> None:
        """Close all channels; whoever waits for an answer learns that there will be none."""
        self._closed = True
        channels, self._channels = self._channels, []
        for channel in channels:
            await channel.close()

    async def wait_ready(self, seconds: float = DIAL_SECONDS) -> None:
        """Wait until a member can be reached; prefers the first that can. Raises Unavailable."""
        channels = await self._open_channels()
        connecting = zip(self.servers, channels, strict=True)
        tasks = [asyncio.ensure_future(_connect(server, channel, seconds)) for server, channel in connecting]
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise Unavailable("etcd grpc connection not ready: context deadline exceeded")
            self._preferred = next(number for number, task in enumerate(tasks) if task in done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def read(self, method: str, body: bytes, seconds: float = READ_SECONDS) -> Coroutine[Any, Any, bytes]:
        """The answer to something that may be asked twice; asked until there is one. Raises CallFailed."""
        return self._ask(method, body, seconds, _may_be_asked_again)

    def write(self, method: str, body: bytes, seconds: float = WRITE_SECONDS) -> Coroutine[Any, Any, bytes]:
        """The answer to something that must not be done twice; sent until it has left. Raises CallFailed."""
        return self._ask(method, body, seconds, _was_never_sent)

    def _ask(
        self, method: str, body: bytes, seconds: float, again: Callable[[CallFailed], bool]
    ) -> Coroutine[Any, Any, bytes]:
        """The answer of a member; a span of the request it is for, where a collector of traces is told of that."""
        asking = self._ask_members(method, body, seconds, again)
        within = current()
        return asking if within is None or within.exported is None else _spanning(method, asking)

    async def _ask_members(
        self, method: str, body: bytes, seconds: float, again: Callable[[CallFailed], bool]
    ) -> bytes:
        path, remaining = f"/etcdserverpb.{method}", seconds
        deadline = time.monotonic() + seconds
        attempts = 0
        while remaining > 0:
            channels = self._channels or await self._open_channels()
            patient = len(channels) == 1 or again is not _may_be_asked_again
            number = self._preferred
            try:
                return await channels[number].unary(path, body, remaining if patient else min(remaining, _TRY_SECONDS))
            except RpcError as failure:
                error = call_failed(failure)
            if error.may_be_elsewhere or error.code == "DEADLINE_EXCEEDED":
                self._pass_on(number)
            if not again(error):
                raise error
            attempts += 1
            if attempts % len(channels) == 0:
                await asyncio.sleep(max(0.0, min(_PAUSE_SECONDS, deadline - time.monotonic())))
            remaining = deadline - time.monotonic()
        raise CallFailed("DEADLINE_EXCEEDED", "context deadline exceeded")

    async def stream(self, method: str, message: bytes) -> StreamCall:
        """A new stream to the preferred member, begun with a message; to be cancelled in the end. Raises CallFailed."""
        channels = await self._open_channels()
        try:
            return await channels[self._preferred].stream(f"/etcdserverpb.{method}", message, _NEEDS_LEADER)
        except RpcError as error:
            raise call_failed(error) from None

    def pass_on(self) -> None:
        """Prefer another member: the present one has failed its caller."""
        self._pass_on(self._preferred)

    async def each(self, method: str, body: bytes, seconds: float) -> AsyncIterator[tuple[str, bytes | CallFailed]]:
        """Ask every member; gives (server, answer or failure)."""
        for number, _ in enumerate(await self._open_channels()):
            try:
                yield self.servers[number], await self._call(number, method, body, seconds)
            except CallFailed as error:
                yield self.servers[number], error

    def _pass_on(self, number: int) -> None:
        """Of many callers who found the same member wanting, only the first moves on."""
        if number == self._preferred and self._channels:
            self._preferred = (number + 1) % len(self._channels)

    async def _call(self, number: int, method: str, body: bytes, seconds: float) -> bytes:
        try:
            return await self._channels[number].unary(f"/etcdserverpb.{method}", body, seconds)
        except RpcError as error:
            raise call_failed(error) from None

    async def _open_channels(self) -> list[Channel]:
        if self._closed:
            raise Unavailable("the connection to etcd is closed")
        if not self._channels:
            await asyncio.to_thread(self._check_files)
            self._channels = self._channels or [self._open_channel(server) for server in self.servers]
        return self._channels

    def _open_channel(self, server: str) -> Channel:
        endpoint, transport = parse_endpoint(server), self._transport
        tls = None
        if endpoint.tls or transport.has_tls_files:
            tls = tls_for_grpc(transport.cafile, transport.certfile, transport.keyfile)
        return Channel(Target(endpoint.host, endpoint.port, tls), self._dialer, endpoint.socket)

    def _check_files(self) -> None:
        transport = self._transport
        if bool(transport.keyfile) != bool(transport.certfile):
            named = f"key: {transport.keyfile}, cert: {transport.certfile}"
            raise UnusableStore(f"KeyFile and CertFile must both be present[{named}]")
        try:
            for path in filter(None, (transport.cafile, transport.certfile, transport.keyfile)):
                os.close(os.open(path, os.O_RDONLY))
        except OSError as error:
            raise UnusableStore(f"open {error.filename}: {str(error.strerror).lower()}") from None


async def _spanning(method: str, asking: Coroutine[Any, Any, bytes]) -> bytes:
    with Span(f"etcdserverpb.{method}"):
        return await asking


async def _connect(server: str, channel: Channel, seconds: float) -> None:
    """Try until there is a connection, and tell why there is none yet."""
    told = ""
    while True:
        try:
            return await channel.connect(seconds)
        except RpcError as error:
            if error.details != told:
                told = error.details
                logger.warning("etcd server %s cannot be reached: %s", server, told)
        await asyncio.sleep(_PAUSE_SECONDS)


def call_failed(error: RpcError) -> CallFailed:
    """What the transport says, as a failure of etcd."""
    return CallFailed(error.code, error.details, sent=error.sent)


def _may_be_asked_again(error: CallFailed) -> bool:
    """Whether a question that found no answer may find one in a moment."""
    return error.may_be_elsewhere or error.code == "DEADLINE_EXCEEDED"


def _was_never_sent(error: CallFailed) -> bool:
    """Whether no member can have seen it."""
    return not error.sent


@contextlib.asynccontextmanager
async def opened_stream(connection: Connection, method: str, message: bytes) -> AsyncIterator[StreamCall]:
    """A stream begun with a message, cancelled whatever happens."""
    stream = await connection.stream(method, message)
    try:
        yield stream
    finally:
        stream.cancel()
