"""``GET /console/requests``: requests as they happen and the state of the server, one JSON object a line.

    {"requests": [...], "missed": 0}      four times a second, if there were any
    {"vitals": {...}}                     once a second

It ends with the client, or when the server stops.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

from pilothouse.console.lookout import Lookout
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import NO_SNIFFING, error_response
from pilothouse.machinery import errors
from pilothouse.net.messages import BodyWriter, Response
from pilothouse.server.lifecycle import Lifecycle

_TICK_SECONDS: Final = 0.25
_TICKS_BETWEEN_VITALS: Final = 4


class RequestStream:
    """Serves it."""

    def __init__(self, lookout: Lookout, lifecycle: Lifecycle) -> None:
        self._lookout, self._lifecycle = lookout, lifecycle

    async def serve(self, request: APIRequest) -> Response:
        """Begin to tell."""
        if not self._lookout.has_room:
            return error_response(request, errors.too_many_requests("too many are looking already", 10))
        request.deadline = None
        name = secrets.token_hex(8)

        async def stream(writer: BodyWriter) -> None:
            try:
                await self._tell(name, writer)
            finally:
                self._lookout.leave(name)

        return Response(200, content_type=b"application/x-ndjson", headers=[NO_SNIFFING], stream=stream)

    async def _tell(self, name: str, writer: BodyWriter) -> None:
        ticks = 0
        while not self._lifecycle.stopping.is_set():
            try:
                lines = await self._lookout.look(name, ticks % _TICKS_BETWEEN_VITALS == 0)
            except OSError:  # the other processes are gone, and so will this one be
                return
            for line in lines:
                writer.write(line + b"\n")
            await writer.drain()
            await asyncio.sleep(_TICK_SECONDS)
            ticks += 1
