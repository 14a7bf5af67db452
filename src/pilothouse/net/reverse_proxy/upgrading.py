"""Requests that want to go on in another protocol.

The client hears of a 101 only after the backend said so. Any other answer is passed on as an answer and ends the
connection on both sides, so that nothing a client sends afterwards can reach the backend as if it had been upgraded
(CVE-2018-1002105).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from pilothouse.net.client import HttpClient, Outbound, Reply
from pilothouse.net.client.head import Headers, ReplyHead
from pilothouse.net.dialing import DialError, OutgoingError
from pilothouse.net.eager import ensure_task
from pilothouse.net.messages import BodyTooLarge, Request, Response
from pilothouse.net.pacing import pace_of
from pilothouse.net.piping import PipeEnd
from pilothouse.net.reverse_proxy.forwarding import Destination
from pilothouse.net.reverse_proxy.headers import reply_headers, request_headers

_MAX_REFUSAL: Final = 1 << 20
_REFUSAL_SECONDS: Final = 10.0


class BadUpgrade(OutgoingError):
    """The backend neither upgraded nor refused."""


def wants_upgrade(request: Request) -> bool:
    """Whether any Connection header asks for an upgrade."""
    return any(b"upgrade" in value.lower() for value in request.header_values(b"connection"))


async def pass_upgrade(client: HttpClient, request: Request, destination: Destination, rate: int = 0) -> Response:
    """Ask the backend; tie both connections together if it agrees. Raises OutgoingError.

    ``rate`` limits the bytes a second of either direction; 0 does not.
    """
    await ensure_task()
    host = destination.host if destination.host is not None else request.host
    headers = request_headers(request, host, upgrade=True) + destination.extra
    reply = await ask_upgrade(client, destination, request.method, headers)
    if reply.status != 101:
        return await refuse_upgrade(reply)

    def upgrade(_: asyncio.Transport, leftover: bytes) -> PipeEnd:
        near, far = PipeEnd(leftover, pace_of(rate)), PipeEnd(pace=pace_of(rate))
        _, early = reply.take_over(far)
        near.tie(far)
        if early:
            far.data_received(early)
        return near

    request.on_disconnect(reply.drop)
    return Response(101, b"", b"", reply.head.headers, upgrade=upgrade)


async def ask_upgrade(client: HttpClient, destination: Destination, method: str, headers: Headers) -> Reply:
    """Send the request on a connection of its own. Raises OutgoingError."""
    outbound = Outbound(method, destination.request_target, headers)
    try:
        reply = await client.send_alone(destination.target, outbound)
    except DialError as error:
        raise DialError(f"error dialing backend: {error}", timed_out=error.timed_out) from None
    if reply.status != 101 and reply.status < 400:
        await reply.abort()
        raise BadUpgrade(f"invalid upgrade response: status code {reply.status}")
    return reply


async def refuse_upgrade(reply: Reply, shown: Callable[[ReplyHead], Headers] = reply_headers) -> Response:
    """The backend's refusal, after which the client's connection ends."""
    try:
        async with asyncio.timeout(_REFUSAL_SECONDS):
            body = await reply.read(_MAX_REFUSAL)
    except (BodyTooLarge, TimeoutError) as error:
        raise BadUpgrade(f"invalid upgrade response: {error or 'i/o timeout'}") from None
    finally:
        await reply.abort()
    return Response(reply.status, body, b"", shown(reply.head), close=True)
