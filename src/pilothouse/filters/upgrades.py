"""Streams, and connections that are taken over after a 101, for filters that want to know when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pilothouse.net.messages import BodyWriter, Upgraded

Stream = Callable[[BodyWriter], Awaitable[None]]
Upgrade = Callable[[asyncio.Transport, bytes], asyncio.Protocol]


def until_ended(stream: Stream, finish: Callable[[], None]) -> Stream:
    """The same stream; ``finish`` is called when it has ended."""

    async def streaming(writer: BodyWriter) -> None:
        try:
            await stream(writer)
        finally:
            finish()

    return streaming


def until_lost(upgrade: Upgrade, finish: Callable[[], None]) -> Upgrade:
    """The same upgrade; ``finish`` is called when the connection is lost."""
    return lambda transport, leftover: _Observed(upgrade(transport, leftover), finish)


class _Observed(Upgraded):
    """A connection that was taken over, and what to do when it is lost."""

    def __init__(self, inner: asyncio.Protocol, finish: Callable[[], None]) -> None:
        self._inner, self._finish = inner, finish
        # What comes often goes straight to the protocol.
        self.data_received = inner.data_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        try:
            self._inner.connection_lost(exc)
        finally:
            self._finish()

    def drain_server(self) -> None:
        if isinstance(self._inner, Upgraded):
            self._inner.drain_server()
