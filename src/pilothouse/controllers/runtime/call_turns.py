"""The server's own calls, some in each turn of the loop.

Controllers live on the loop that serves clients. A set of ten thousand pods wakes a thousand of their tasks at once,
each has a call to make, and all of them would be made in one turn: clients would wait for its end.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.runtime.places import Places
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

A_TURN: Final = 8
"""So many calls are begun in one turn: some milliseconds."""


class CallTurns:
    """A handler behind which calls take turns."""

    def __init__(self, handler: Handler) -> None:
        self._handler, self._places = handler, Places(A_TURN)

    async def __call__(self, request: APIRequest) -> Response:
        await self._places.take()
        return await self._handler(request)
