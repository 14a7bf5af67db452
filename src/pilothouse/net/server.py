"""The HTTP server's shared state: its connections, its one timer, and its orderly end.

A connection belongs to exactly one server from `connection_made` to `connection_lost`.  After an upgrade it is kept
apart: no time-out applies to it, and nobody waits for it but `close`.  One periodic sweep enforces every time-out, so
that no request pays for a timer of its own; it is brought forward when a waiting request has an earlier deadline.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pilothouse.net.busy_polling import CLIENT_SECONDS, BusyPolling
from pilothouse.net.eager import Suspended
from pilothouse.net.exchange import Exchange
from pilothouse.net.held_input import MOST_BYTES, HeldInput
from pilothouse.net.http1.answer_turns import AnswerTurns
from pilothouse.net.http1.connection import Http1Connection
from pilothouse.net.http2.connection import Http2Connection
from pilothouse.net.http2.settings import Http2Options
from pilothouse.net.messages import Connection, Handler, Request
from pilothouse.net.parking import Parking
from pilothouse.net.reading_turns import turns_of
from pilothouse.net.request_body import RequestBody
from pilothouse.net.request_head import HeaderBlock, RequestLine
from pilothouse.net.strangers import Strangers, affordable
from pilothouse.net.turns import BodyTurns, WriteTurns

logger = logging.getLogger(__name__)


ServedConnection = Http1Connection | Http2Connection

RequestFactory = Callable[[Connection, RequestLine, HeaderBlock, bool, RequestBody | None], Request]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what clients may use up. Times in seconds, sizes in bytes."""

    header_bytes: int = (1 << 20) + 4096  # Go: DefaultMaxHeaderBytes and its slop
    header_timeout: float = 32.0
    idle_timeout: float = 90.0
    body_grace: float = 1.0  # a small body may be this late before its handler is started without it
    unread_timeout: float = 60.0  # while the next piece of an answer waits for the client, as long as requests may take
    linger: float = 0.5  # after refusing a request, how long the client may take to read why
    goodbye: float = 2.0  # when the server stops, how long a client may take to read the end of its last answer
    unauthenticated_connections: int = 4096
    held_input_bytes: int = MOST_BYTES  # of all heads and bodies that are not complete
    sweep_interval: float = 1.0


A_SWEEP: Final = 1000
"""Of so many handlers and connections the time is looked at in one turn: half a millisecond."""


CANCELLED_A_TURN: Final = 32
"""Each takes up to a tenth of a millisecond."""


class HttpServer:
    """Holds the handler and every open connection."""

    def __init__(
        self,
        handler: Handler,
        *,
        request_type: RequestFactory = Request,
        limits: Limits | None = None,
        http2: Http2Options | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_closed`` is told whenever a connection has gone."""
        self.handler, self._on_closed = handler, on_closed
        self.request_type = request_type
        self.limits = limits or Limits()
        self.http2 = http2 or Http2Options()
        self.loop = loop or asyncio.get_running_loop()
        self.now = self.loop.time()  # as of the last sweep: good enough for idle times
        self.turns = WriteTurns()
        self.body_turns = BodyTurns(self.loop)
        self.reading = turns_of(self.loop)
        self.polling = BusyPolling(self.loop, CLIENT_SECONDS)
        self.answers = AnswerTurns(self.loop)
        self.parking = Parking(self.loop)
        self.held_input = HeldInput(self.limits.held_input_bytes)
        self.draining = False
        self._closing = False
        self.connections: dict[ServedConnection, None] = {}  # oldest first
        self.upgraded: dict[ServedConnection, None] = {}
        self.waiting: dict[Suspended[Any], Exchange] = {}
        self._forsaken: deque[Suspended[Any]] = deque()
        self._strangers: Strangers[ServedConnection] = Strangers(affordable(self.limits.unauthenticated_connections))
        self._next_sweep = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._empty: asyncio.Future[None] | None = None

    def protocol(self, agreed: str | None = None) -> ServedConnection:
        """A protocol for a new connection (the factory to give to the loop), as ``agreed`` on with the client."""
        return Http2Connection(self) if agreed == "h2" else Http1Connection(self)

    # Connections

    def admit(self, protocol: ServedConnection) -> None:
        """Register a new connection; if there are too many strangers, another goes for it."""
        if self._timer is None:
            self._schedule(self.loop.time() + self.limits.sweep_interval)
        while (stranger := self._strangers.surplus(_may_go)) is not None:
            self._strangers.discard(stranger)
            if not stranger.connection.authenticated:
                stranger.abort()
        self._strangers.add(protocol, protocol.connection.peer[0])
        self.connections[protocol] = None

    @property
    def load(self) -> int:
        """Connections there are."""
        return len(self.connections) + len(self.upgraded)

    def shed_stranger(self) -> bool:
        """Drop a connection of somebody unknown; False if there is none."""
        while (stranger := self._strangers.oldest(_may_go)) is not None:
            self._strangers.discard(stranger)
            if not stranger.connection.authenticated:
                stranger.abort()
                return True
        return False

    def forget(self, protocol: ServedConnection) -> None:
        """The connection is gone."""
        self.connections.pop(protocol, None)
        self.upgraded.pop(protocol, None)
        self._strangers.discard(protocol)
        self.answers.forget(protocol)
        self._check_empty()
        self._on_closed()

    def hand_over(self, protocol: ServedConnection) -> None:
        """The connection goes on as something other than HTTP."""
        self.forget(protocol)
        self.upgraded[protocol] = None
        if self.draining:
            self.loop.call_soon(protocol.drain_upgraded)

    # Suspended handlers

    def suspended(self, handler: Suspended[Any], exchange: Exchange, deadline: float | None) -> None:
        """A handler has to wait: keep it, and mind its deadline."""
        self.waiting[handler] = exchange
        handler.when_over(self._handler_over)
        if deadline is not None and deadline < self._next_sweep:
            self._schedule(deadline)

    def cancel_soon(self, handler: Suspended[Any]) -> None:
        """Cancel a handler whose client has gone. Many may go at once, and each handler has something to do then."""
        if not self._forsaken:
            self.loop.call_soon(self._cancel_some)
        self._forsaken.append(handler)

    def _cancel_some(self) -> None:
        for _ in range(min(len(self._forsaken), CANCELLED_A_TURN)):
            handler = self._forsaken.popleft()
            if not handler.is_over:
                handler.cancel()
        if self._forsaken:
            self.loop.call_soon(self._cancel_some)

    def _handler_over(self, handler: Suspended[Any]) -> None:
        self.waiting.pop(handler, None)
        if self._empty is not None:
            self._check_empty()

    # Time

    def sweep(self) -> None:
        """Enforce every time-out that is due; where very many wait, some in each turn."""
        self.now = self.loop.time()
        self._next_sweep = self.now + self.limits.sweep_interval
        self._sweep_some(iter([*self.waiting]), iter([*self.connections]))

    def _sweep_some(self, handlers: Iterator[Suspended[Any]], connections: Iterator[ServedConnection]) -> None:
        now, left = self.now, A_SWEEP
        for handler in islice(handlers, left):
            left -= 1
            exchange = self.waiting.get(handler)
            if exchange is None:
                continue
            deadline = exchange.deadline(handler)
            if deadline is None:
                continue
            if deadline <= now:
                exchange.time_out(handler)
            elif deadline < self._next_sweep:
                self._next_sweep = deadline
        for protocol in islice(connections, left):
            left -= 1
            if protocol in self.connections:
                protocol.check_time(now)
        if left:
            self._schedule(self._next_sweep)
        else:
            self.loop.call_soon(self._sweep_some, handlers, connections)

    def _schedule(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_sweep = when
        self._timer = self.loop.call_at(when, self.sweep)

    # The end

    def begin_drain(self) -> None:
        """Finish what is under way, accept no further requests: answers say `Connection: close`, idle ones close."""
        self.draining = True
        for protocol in list(self.connections):
            protocol.drain()
        for protocol in list(self.upgraded):
            protocol.drain_upgraded()

    async def wait_idle(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 (it reports, not raises)
        """Wait until no connection and no handler is left; False if that took longer than `timeout`."""
        if self._idle:
            return True
        if self._empty is None:
            self._empty = self.loop.create_future()
        done, _ = await asyncio.wait([self._empty], timeout=timeout)
        return bool(done)

    async def close(self, grace: float = 5.0) -> None:
        """Drop every connection, cancel every handler, and wait for their ends (but not for the stubborn).

        Upgraded connections may send what is already written.
        """
        self.draining = True
        for protocol in list(self.connections):
            protocol.abort()
        for handler in list(self.waiting):
            handler.cancel()
        for protocol in list(self.upgraded):
            protocol.close_upgraded()
        self._closing = True
        await self.wait_idle(grace)
        for protocol in list(self.upgraded):
            protocol.abort()
        self.parking.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _idle(self) -> bool:
        return not self.connections and not self.waiting and not (self._closing and self.upgraded)

    def _check_empty(self) -> None:
        if self._empty is not None and self._idle:
            if not self._empty.done():
                self._empty.set_result(None)
            self._empty = None


def _may_go(stranger: ServedConnection) -> bool:
    """Nothing is lost with it; or it is no stranger any more, and only its entry goes."""
    return stranger.idle or stranger.connection.authenticated
