"""The server's own calls, in line for a place in a turn of the loop with whatever else it does by itself.

Those about one namespace stand in a line of their own: five hundred pods that are made for one are not before all else.
"""

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
        await work_turns().take(_namespace(request.path))
        return await self._handler(request)


def _namespace(path: str) -> str:
    return path.partition("/namespaces/")[2].partition("/")[0]
