"""Connections kept for reuse, by where they lead.

A connection serves one request at a time, as HTTP/1.1 has it: for few at once that costs least. When many are on their
way to a server that agrees on HTTP/2, watches above all, the others share one connection, and another only when that is
full; all who ask while it is being made wait for the same attempt.

A kept connection may have been given up by the other side without our knowing. A request that fails on one before
anything came back, and that can be sent again, gets a second try on a new connection, as in Go; so does one of which
the other side says that it has not looked at it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Final
from weakref import WeakSet

from pilothouse.net.client.connection import ClientConnection, ConnectionEnded
from pilothouse.net.client.departures import Departures
from pilothouse.net.client.http2 import Http2ClientConnection
from pilothouse.net.client.outbound import Outbound
from pilothouse.net.client.reply import Reply
from pilothouse.net.dialing.dialer import Dialer, Target
from pilothouse.net.dialing.failures import DialError, NoCommonProtocol
from pilothouse.net.eager import Prompt

IDLE_SECONDS: Final = 90.0
_IDLE_PER_TARGET: Final = 64
_ATTEMPTS: Final = 3
_DIALS: Final = 8
_MOST_KNOWN: Final = 1000
_HTTP2: Final = "h2"
_ALONE: Final = ("http/1.1",)
FEW: Final = 32
"""So many connections to a server have one request each before others share one."""
AnyConnection = ClientConnection | Http2ClientConnection


class HttpClient:
    """Sends requests. Closed once, when its owner stops."""

    def __init__(self, dialer: Dialer | None = None, *, few: int = FEW) -> None:
        self._dialer, self._few = dialer or Dialer(), few
        self._alone: dict[Target, WeakSet[ClientConnection]] = {}
        """Those that serve one request at a time, to servers that may agree on HTTP/2."""
        self._becoming: Counter[Target] = Counter()
        """How many of these are being made."""
        self._idle: dict[Target, list[ClientConnection]] = {}
        """The latest is used first, so that what is not needed grows old; lists that are empty go with those."""
        self._shared: dict[Target, list[Http2ClientConnection]] = {}
        self._dialing: dict[Target, asyncio.Task[None]] = {}
        self._unshared: set[Target] = set()
        """Those that did not agree on HTTP/2 when last asked."""
        self._only_shared: set[Target] = set()
        """Those that agree on nothing else."""
        self._departures = Departures()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self._generation = 0

    async def send(self, target: Target, outbound: Outbound) -> Reply:
        """Send a request and return when the head of the answer is there. Raises OutgoingError."""
        connection = self._take(target)
        if connection is None:
            return await self._send(target, outbound, self._find_shared(target), _ATTEMPTS)
        head = _ask(connection, outbound)
        try:
            return await head
        except BaseException as error:
            await connection.give_up(head)
            if not isinstance(error, ConnectionEnded) or not _may_repeat(error, outbound, is_new=False):
                raise
        return await self._send(target, outbound, self._find_shared(target), _ATTEMPTS - 1)

    async def send_kept(self, target: Target, outbound: Outbound, seconds: float) -> Reply | None:
        """The same on a kept connection, within so many seconds and without a Task; None where there is none.

        Raises OutgoingError, and TimeoutError.
        """
        connection = self._take(target)
        if connection is None:
            return None
        head = _ask(connection, outbound)
        timer = connection.loop.call_later(seconds, head.refuse, TimeoutError())
        try:
            return await head
        except BaseException as error:
            await connection.give_up(head)
            if isinstance(error, ConnectionEnded) and _may_repeat(error, outbound, is_new=False):
                return None
            raise
        finally:
            timer.cancel()

    async def _send(
        self, target: Target, outbound: Outbound, shared: Http2ClientConnection | None, attempts: int
    ) -> Reply:
        for left in reversed(range(attempts)):
            connection: AnyConnection | None = shared
            is_new = connection is None
            if connection is None:
                connection = await self._connect(target)
            try:
                return await connection.exchange(outbound)
            except ConnectionEnded as error:
                if not left or not _may_repeat(error, outbound, is_new=is_new):
                    raise
            shared = self._find_shared(target)
        raise AssertionError("the last attempt returns or raises")

    async def send_alone(self, target: Target, outbound: Outbound) -> Reply:
        """The same on a connection of its own, for requests that want to go on in another protocol."""
        _, connection = await self._dialer.connect(_for_one(target), lambda: ClientConnection(_close))
        return await connection.exchange(outbound)

    def renew(self) -> None:
        """Use no connection again that is there now; those in use end with their answers."""
        self._generation += 1
        self._drop_idle()
        for connection in [each for shared in self._shared.values() for each in shared]:
            connection.retire()

    async def close(self) -> None:
        """Close all connections that are not in use."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        dialing = list(self._dialing.values())
        for task in dialing:
            task.cancel()
        await asyncio.gather(*dialing, return_exceptions=True)
        self._drop_idle()
        for connection in [each for shared in self._shared.values() for each in shared]:
            connection.drop() if connection.is_idle else connection.retire()
        await asyncio.sleep(0)

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.drop()  # nothing is on its way, and nobody waits for goodbyes

    # Finding

    def _find(self, target: Target) -> AnyConnection | None:
        return self._take(target) or self._find_shared(target)

    def _find_shared(self, target: Target) -> Http2ClientConnection | None:
        for connection in self._shared.get(target, ()):
            if connection.has_room:
                return connection
        return None

    def _take(self, target: Target) -> ClientConnection | None:
        connections = self._idle.get(target)
        while connections:
            connection = connections.pop()
            if not connection.closed and not connection.transport.is_closing():
                return connection
        return None

    # Connecting

    async def _connect(self, target: Target) -> AnyConnection:
        tls = target.tls
        if tls is None or _HTTP2 not in tls.protocols:
            return await self._dial(target)
        if target not in self._only_shared and self._are_few(target):
            self._becoming[target] += 1
            try:
                return await self._dial(target, alone=True)
            except NoCommonProtocol:
                if len(self._only_shared) >= _MOST_KNOWN:
                    self._only_shared.clear()
                self._only_shared.add(target)
            finally:
                self._becoming[target] -= 1
                if not self._becoming[target]:
                    del self._becoming[target]
        for _ in range(_DIALS):
            if target in self._unshared:
                return await self._dial(target)
            await asyncio.shield(self._dial_for_all(target))
            found = self._find(target)
            if found is not None:
                return found
        raise DialError("http2: no usable connection")

    def _are_few(self, target: Target) -> bool:
        known = self._alone.get(target)
        if known is None:
            if len(self._alone) >= _MOST_KNOWN:
                self._alone.clear()
            known = self._alone[target] = WeakSet()
        return self._becoming[target] + sum(not each.closed for each in known) < self._few

    def _dial_for_all(self, target: Target) -> asyncio.Task[None]:
        """The attempt that is under way, or a new one. What comes of it is among those kept."""
        task = self._dialing.get(target)
        if task is None:
            task = self._dialing[target] = asyncio.get_running_loop().create_task(self._dial_and_keep(target))
            task.add_done_callback(lambda done: self._dialled(target, done))
        return task

    def _dialled(self, target: Target, task: asyncio.Task[None]) -> None:
        self._dialing.pop(target, None)
        if not task.cancelled():
            task.exception()  # those who waited have heard of it

    async def _dial_and_keep(self, target: Target) -> None:
        generation = self._generation
        connection = await self._dial(target)
        if isinstance(connection, ClientConnection):
            self._keep(target, generation, connection)

    async def _dial(self, target: Target, *, alone: bool = False) -> AnyConnection:
        generation = self._generation

        keep = partial(self._keep, target, generation)

        def make(agreed: str | None) -> AnyConnection:
            if agreed == _HTTP2:
                return Http2ClientConnection(lambda ended: self._forget_shared(target, ended))
            return ClientConnection(keep, self._departures)

        _, connection = await self._dialer.negotiate(_for_one(target) if alone else target, make)
        if isinstance(connection, Http2ClientConnection):
            self._share(target, connection, is_current=generation == self._generation)
        elif alone:
            self._alone.setdefault(target, WeakSet()).add(connection)
        elif target.tls is not None and _HTTP2 in target.tls.protocols:
            if len(self._unshared) >= _MOST_KNOWN:
                self._unshared.clear()
            self._unshared.add(target)
        return connection

    # Keeping

    def _share(self, target: Target, connection: Http2ClientConnection, *, is_current: bool) -> None:
        self._unshared.discard(target)
        if connection.leaving:
            return
        if not is_current or self._closed:
            connection.retire()
            return
        self._shared.setdefault(target, []).append(connection)
        self._look_after()

    def _forget_shared(self, target: Target, connection: Http2ClientConnection) -> None:
        shared = self._shared.get(target, [])
        if connection in shared:
            shared.remove(connection)
            if not shared:
                del self._shared[target]

    def _keep(self, target: Target, generation: int, connection: ClientConnection) -> None:
        """Keep a connection that was made in a generation, for as long as that lasts."""
        connections = self._idle.get(target)
        if connections is None:
            connections = self._idle[target] = []
        if generation != self._generation or self._closed or len(connections) >= _IDLE_PER_TARGET:
            connection.transport.close()
            return
        connection.idle_since = connection.loop.time()
        connections.append(connection)
        if self._sweep is None:
            self._look_after()

    def _look_after(self) -> None:
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._drop_old)

    def _drop_old(self) -> None:
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        for target, connections in list(self._idle.items()):
            kept = [each for each in connections if each.idle_since > oldest and not each.closed]
            for connection in connections:
                if connection not in kept:
                    connection.transport.close()
            if kept:
                self._idle[target] = kept
            else:
                del self._idle[target]
        for shared in [each for found in self._shared.values() for each in found]:
            if shared.is_idle and shared.idle_since <= oldest:
                shared.retire()
        self._sweep = None
        if self._idle or self._shared:
            self._look_after()


def _for_one(target: Target) -> Target:
    if target.tls is None or target.tls.protocols == _ALONE:
        return target
    return replace(target, tls=replace(target.tls, protocols=_ALONE))


def _ask(connection: ClientConnection, outbound: Outbound) -> Prompt[Reply]:
    try:
        return connection.ask(outbound)
    except BaseException:
        connection.transport.close()  # nothing was sent, and nobody would give it back
        raise


def _may_repeat(error: ConnectionEnded, outbound: Outbound, *, is_new: bool) -> bool:
    if error.unprocessed:
        return isinstance(outbound.body, bytes)
    return not is_new and error.untouched and outbound.can_be_repeated


def _close(connection: ClientConnection) -> None:
    connection.transport.close()
