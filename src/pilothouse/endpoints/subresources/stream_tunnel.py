"""Port-forwarding for clients that put SPDY into a WebSocket, and kubelets that speak SPDY alone.

Nothing of the streams is looked at: the kubelet is asked for SPDY first, and when it agrees, the client's WebSocket is
accepted and its binary messages are the bytes of that connection.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.subresources.links import Links
from pilothouse.net.messages import Response
from pilothouse.net.reverse_proxy import Destination
from pilothouse.net.reverse_proxy.headers import request_headers
from pilothouse.net.reverse_proxy.upgrading import ask_upgrade, refuse_upgrade
from pilothouse.net.websocket import BadHandshake, Handshake, read_handshake
from pilothouse.net.websocket_messages import TunnelSocket

_PREFIX: Final = "SPDY/3.1+"
_SUFFIX: Final = ".k8s.io"
_WEBSOCKET: Final = frozenset(
    {b"sec-websocket-key", b"sec-websocket-version", b"sec-websocket-protocol", b"sec-websocket-extensions"}
)
_TEXT: Final = b"text/plain; charset=utf-8"


async def tunnel_streams(links: Links, request: APIRequest, destination: Destination, protocols: list[str]) -> Response:
    """Ask the kubelet, then accept the client. Raises OutgoingError."""
    try:
        handshake = read_handshake(request)
    except BadHandshake as bad:
        links.metrics.count_tunnelled(500)
        return Response(bad.status, bad.text.encode(), b"", list(bad.headers), close=True)
    inner = [name.removeprefix(_PREFIX) for name in protocols if name.startswith(_PREFIX) and name.endswith(_SUFFIX)]
    headers = [pair for pair in request_headers(request, request.host) if pair[0].lower() not in _WEBSOCKET]
    headers += [(b"Connection", b"Upgrade"), (b"Upgrade", b"SPDY/3.1")]
    headers = [pair for pair in headers if pair[0].lower() != b"x-stream-protocol-version"]
    headers += [(b"X-Stream-Protocol-Version", name.encode()) for name in inner]
    reply = await ask_upgrade(links.client, destination, "POST", headers)
    if reply.status != 101:
        links.metrics.count_tunnelled(reply.status)
        return await refuse_upgrade(reply)
    head = reply.head
    if b"upgrade" not in head.get(b"connection").lower() or b"spdy/3.1" not in head.get(b"upgrade").lower():
        await reply.abort()
        links.metrics.count_tunnelled(500)
        return Response(500, b"unable to upgrade: missing upgrade headers in response\n", _TEXT, close=True)
    chosen = head.get(b"x-stream-protocol-version").strip()
    granted = Handshake(handshake.accept, (_PREFIX.encode() + chosen,) if chosen else ()).headers()

    def upgrade(_: asyncio.Transport, leftover: bytes) -> TunnelSocket:
        return TunnelSocket(leftover, reply, links.max_bytes_per_second)

    links.metrics.count_tunnelled(101)
    request.on_disconnect(reply.drop)
    return Response(101, b"", b"", granted, upgrade=upgrade)
