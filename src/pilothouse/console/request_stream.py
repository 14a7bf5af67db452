"""``GET /console/requests``: requests as they happen and the state of the server, one JSON object a line.

    {"requests": [...], "missed": 0}      four times a second, if there were any
    {"vitals": {...}}                     once a second

It ends with the client, or when the server stops.
"""

from __future__ import annotations

import asyncio
from typing import Final

import orjson

from pilothouse.console.recorder import Recorder, Viewer
from pilothouse.console.vitals import Vitals
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import NO_SNIFFING, error_response
from pilothouse.machinery import errors
from pilothouse.net.messages import BodyWriter, Response
from pilothouse.server.lifecycle import Lifecycle

_TICK_SECONDS: Final = 0.25
_TICKS_BETWEEN_VITALS: Final = 4


class RequestStream:
    """Serves it."""

    def __init__(self, recorder: Recorder, vitals: Vitals, lifecycle: Lifecycle) -> None:
        self._recorder, self._vitals, self._lifecycle = recorder, vitals, lifecycle

    async def serve(self, request: APIRequest) -> Response:
        """Begin to tell."""
        viewer = self._recorder.join()
        if viewer is None:
            return error_response(request, errors.too_many_requests("too many are looking already", 10))
        request.deadline = None
        request.on_disconnect(lambda: self._recorder.leave(viewer))  # the client may go before the stream begins

        async def stream(writer: BodyWriter) -> None:
            try:
                await self._tell(viewer, writer)
            finally:
                self._recorder.leave(viewer)

        return Response(200, content_type=b"application/x-ndjson", headers=[NO_SNIFFING], stream=stream)

    async def _tell(self, viewer: Viewer, writer: BodyWriter) -> None:
        clock, ticks, lag = asyncio.get_running_loop().time, 0, 0.0
        while not self._lifecycle.stopping.is_set():
            if ticks % _TICKS_BETWEEN_VITALS == 0:
                writer.write(orjson.dumps({"vitals": await self._vitals.read(lag)}) + b"\n")
                lag = 0.0
            requests, missed = viewer.take()
            if requests or missed:
                writer.write(orjson.dumps({"requests": requests, "missed": missed}) + b"\n")
            await writer.drain()
            due = clock() + _TICK_SECONDS
            await asyncio.sleep(_TICK_SECONDS)
            lag, ticks = max(lag, clock() - due), ticks + 1
