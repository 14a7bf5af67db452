"""Connections kept for reuse, by where they lead.

A kept connection may have been given up by the other side without our knowing. A request that fails on one before
anything came back, and that can be sent again, gets a second try on a new connection, as in Go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.net.client.connection import ClientConnection, ConnectionEnded, Outbound, Reply
from pilothouse.net.dialing.dialer import Dialer, Target

IDLE_SECONDS: Final = 90.0
_IDLE_PER_TARGET: Final = 64


class HttpClient:
    """Sends requests. Closed once, when its owner stops."""

    def __init__(self, dialer: Dialer | None = None) -> None:
        self._dialer = dialer or Dialer()
        self._idle: dict[Target, list[ClientConnection]] = {}
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self._generation = 0

    async def send(self, target: Target, outbound: Outbound) -> Reply:
        """Send a request and return when the head of the answer is there. Raises OutgoingError."""
        kept = self._take(target)
        if kept is not None:
            try:
                return await kept.exchange(outbound)
            except ConnectionEnded as error:
                if not (error.untouched and outbound.can_be_repeated):
                    raise
        return await (await self._connect(target)).exchange(outbound)

    async def send_alone(self, target: Target, outbound: Outbound) -> Reply:
        """The same on a connection of its own, for requests that want to go on in another protocol."""
        _, connection = await self._dialer.connect(target, lambda: ClientConnection(_close))
        return await connection.exchange(outbound)

    def renew(self) -> None:
        """Use no connection again that is there now; those in use end with their answers."""
        self._generation += 1
        self._drop_idle()

    async def close(self) -> None:
        """Close all connections that are not in use."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        self._drop_idle()
        await asyncio.sleep(0)

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.drop()  # nothing is on its way, and nobody waits for goodbyes

    async def _connect(self, target: Target) -> ClientConnection:
        generation = self._generation

        def keep(connection: ClientConnection) -> None:
            if generation == self._generation:
                self._keep(target, connection)
            else:
                connection.transport.close()

        _, connection = await self._dialer.connect(target, lambda: ClientConnection(keep))
        return connection

    def _take(self, target: Target) -> ClientConnection | None:
        connections = self._idle.get(target)
        while connections:
            connection = connections.pop()
            if not connections:
                del self._idle[target]
            if not connection.closed and not connection.transport.is_closing():
                return connection
        return None

    def _keep(self, target: Target, connection: ClientConnection) -> None:
        connections = self._idle.setdefault(target, [])
        if self._closed or len(connections) >= _IDLE_PER_TARGET:
            connection.transport.close()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        connections.append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(IDLE_SECONDS, self._drop_old)

    def _drop_old(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - IDLE_SECONDS
        for target, connections in list(self._idle.items()):
            kept = [each for each in connections if each.idle_since > oldest and not each.closed]
            for connection in connections:
                if connection not in kept:
                    connection.transport.close()
            if kept:
                self._idle[target] = kept
            else:
                del self._idle[target]
        self._sweep = loop.call_later(IDLE_SECONDS, self._drop_old) if self._idle else None


def _close(connection: ClientConnection) -> None:
    connection.transport.close()
