"""Requests wait here until there is a seat for them, or are turned away with a 429 that says when to come back.

A request holds its seat until it is served: a large body until it is written, a watch until it has begun. While it
waits for its own body it has none: clients that take a minute to send one would keep everybody else out. Streams into
containers, proxies and logs pass without one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

from pilothouse.endpoints.request import APIRequest, Seat
from pilothouse.endpoints.responses import text_response
from pilothouse.filters.timeout import is_long_running
from pilothouse.filters.types import Handler, Serving, answered
from pilothouse.filters.upgrades import until_ended, until_lost
from pilothouse.flowcontrol.controller import FlowController
from pilothouse.flowcontrol.flows import Flow
from pilothouse.flowcontrol.max_in_flight import MaxInFlight
from pilothouse.flowcontrol.tickets import Ticket
from pilothouse.flowcontrol.traffic import Traffic
from pilothouse.machinery import errors
from pilothouse.net import eager
from pilothouse.net.messages import Response

_TOO_MANY: Final = b"Too many requests, please try again later.\n"
_READING: Final = frozenset({"get", "list", "watch"})
_MOST_WAITING_SECONDS: Final = 60.0
_LARGE: Final = 64 * 1024
_SLICE: Final = 32 * 1024


def with_flow_control(following: Handler, controller: FlowController, request_timeout: float) -> Handler:
    """Queue by priority and fairness."""
    loop_time = asyncio.get_running_loop().time
    classify, start, clock = controller.classify, controller.start, time.monotonic

    def handle(request: APIRequest) -> Serving:
        info = request.info
        flow = classify(request.user, info)
        if info.verb == "get" and info.is_resource and not info.subresource:
            return read(request, flow)
        if info.verb != "watch" and is_long_running(request):
            return following(request)
        return queue(request, flow)

    async def queue(request: APIRequest, flow: Flow) -> Response:
        ticket = start(flow, request)
        if ticket is None:
            return turned_away(flow)
        if ticket.turn is not None:
            try:
                served = await ticket.wait(_limit(request, loop_time(), request_timeout))
            finally:
                _note_wait(ticket, loop_time())
            if not served:
                return turned_away(flow)
        if request.lacks_body:
            seat = _IntermittentSeat(request, ticket, lambda: start(flow, request), request_timeout, controller.traffic)
            return await _serve(request, seat, following(request))
        if request.info.verb == "watch":
            return await _serve(request, ticket, _watch(following, request, controller), watching=True)
        request.seat = ticket
        try:  # as ``_serve`` does, without a coroutine more: every write comes by here
            response = await following(request)
        except BaseException:
            _free(request, ticket)
            raise
        return _served(request, response, ticket)

    async def read(request: APIRequest, flow: Flow) -> Response:
        """Serve a read of one object.

        From memory it is served in one go, so that nobody would see its seat: it gets one only when it waits, or when
        its answer takes a while to write.
        """
        queues, started = flow.level.queues, clock()
        if not queues.has_room():
            return await queue(request, flow)
        serving = following(request)
        try:
            awaited = serving.send(None)
        except StopIteration as stop:
            response: Response = stop.value
            if response.parts is None and len(response.body) <= _LARGE:
                queues.pass_through(flow, started, clock())
                if response.upgrade is None:
                    response.headers += flow.headers
                return response
            return await _serve(request, queues.take(flow, request), answered(response))
        except BaseException:
            queues.pass_through(flow, started, clock())
            raise
        return await _serve(request, queues.take(flow, request), eager.resume(serving, awaited))

    return handle


class _IntermittentSeat:
    """The seat of a request whose body is yet to come: given back while that is waited for, and asked for anew.

    Without a seat it is still counted as being in flight.
    """

    __slots__ = ("_again", "_request", "_ticket", "_timeout", "_traffic")

    def __init__(
        self,
        request: APIRequest,
        ticket: Ticket,
        again: Callable[[], Ticket | None],
        request_timeout: float,
        traffic: Traffic,
    ) -> None:
        self._request, self._ticket, self._again, self._timeout = request, ticket, again, request_timeout
        self._traffic = traffic
        request.unseated = self._wait

    @property
    def flow(self) -> Flow:
        return self._ticket.flow

    def release(self) -> None:
        self._ticket.release()

    async def _wait(self, body: Awaitable[bytes]) -> bytes:
        kind = self._ticket.kind
        self._ticket.release()
        self._traffic.add(kind, 1, time.monotonic())
        try:
            found = await body
        finally:
            self._traffic.add(kind, -1, time.monotonic())
        ticket = self._again()
        if ticket is not None:
            self._ticket = ticket
            if await ticket.wait(_limit(self._request, asyncio.get_running_loop().time(), self._timeout)):
                return found
        raise errors.too_many_requests("Too many requests, please try again later.", self.flow.level.dropped.add())


async def _serve(
    request: APIRequest, ticket: Ticket | _IntermittentSeat, serving: Awaitable[Response], *, watching: bool = False
) -> Response:
    """Give the ticket back once the request is served."""
    request.seat = ticket
    try:
        response = await serving
    except BaseException:
        _free(request, ticket)
        raise
    return _served(request, response, ticket, watching=watching)


def _free(request: APIRequest, ticket: Ticket | _IntermittentSeat) -> None:
    ticket.release()
    # A ticket knows its request: the two would keep each other until the garbage is collected.
    request.seat = request.unseated = None


def _served(
    request: APIRequest, response: Response, ticket: Ticket | _IntermittentSeat, *, watching: bool = False
) -> Response:
    """An answer whose seat is free, or will be when it is written."""
    if response.upgrade is None:
        response.headers += ticket.flow.headers
    if not watching and (response.parts is not None or len(response.body) > _LARGE):
        _hold(request, response, ticket)
    elif request.seat is not None:
        ticket.release()
    request.seat = request.unseated = None
    return response


def _limit(request: APIRequest, now: float, request_timeout: float) -> float:
    """Until when to wait: for a quarter of the time that the request has."""
    allotted = request_timeout if request.deadline is None else request.deadline - now
    return now + min(allotted / 4, _MOST_WAITING_SECONDS)


def _note_wait(ticket: Ticket, now: float) -> None:
    series = ticket.flow.series
    executed = ticket.started > ticket.arrived
    waited = ticket.started - ticket.arrived if executed else max(0.0, now - ticket.arrived)
    (series.waited if executed else series.waited_in_vain).observe(waited)
    ticket.request.queued_seconds = waited


def turned_away(flow: Flow) -> Response:
    """The answer to a request that there is no room for."""
    response = _too_many(flow.level.dropped.add())
    response.headers += flow.headers
    return response


def _too_many(seconds: int) -> Response:
    return text_response(429, _TOO_MANY, [(b"retry-after", b"%d" % seconds)])


async def _watch(following: Handler, request: APIRequest, controller: FlowController) -> Response:
    """Count a watch for as long as it lasts."""
    end = controller.watches.add(request)
    try:
        response = await following(request)
    except BaseException:
        end()
        raise
    if response.upgrade is not None:
        response.upgrade = until_lost(response.upgrade, end)
    elif response.stream is not None and request.method != "HEAD":
        request.on_disconnect(end)  # the client may go before the stream begins
        response.stream = until_ended(response.stream, end)
    else:
        end()
    return response


def _hold(request: APIRequest, response: Response, seat: Seat) -> None:
    """Keep the seat until a large body is written, the client has gone, or the time of the request is over."""
    if request.method == "HEAD":
        seat.release()
        return
    if response.parts is None:
        response.parts, response.length, response.body = _slices(response.body), len(response.body), b""
    request.on_disconnect(seat.release)
    timer = None
    if request.deadline is not None:
        timer = asyncio.get_running_loop().call_at(request.deadline, seat.release)
    response.parts = _held(response.parts, seat, timer)


def _held(parts: Iterable[bytes], seat: Seat, timer: asyncio.TimerHandle | None) -> Iterator[bytes]:
    try:
        yield from parts
    finally:
        if timer is not None:
            timer.cancel()
        seat.release()


def _slices(body: bytes) -> Iterator[bytes]:
    return (body[start : start + _SLICE] for start in range(0, len(body), _SLICE))


def with_max_in_flight(following: Handler, limits: MaxInFlight) -> Handler:
    """Serve so many at once, and turn the rest away."""

    async def handle(request: APIRequest) -> Response:
        if is_long_running(request):
            return await following(request)
        kind = 0 if request.info.verb in _READING else 1
        entered = limits.enter(kind, request.user)
        if entered is None:
            return _too_many(1)
        try:
            return await following(request)
        finally:
            if entered:
                limits.leave(kind)

    return handle
