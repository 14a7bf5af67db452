"""The server's own calls, in line for a place in a turn of the loop with whatever else it does by itself."""

from __future__ import annotations

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response
from pilothouse.net.work_turns import work_turns


class CallTurns:
    """A handler behind which calls take turns."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, request: APIRequest) -> Response:
        await work_turns().take()
        return await self._handler(request)
