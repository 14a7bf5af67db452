"""The server's own calls, some in each turn of the loop.

Controllers live on the loop that serves clients. A set of ten thousand pods wakes a thousand of their tasks at once,
each has a call to make, and all of them would be made in one turn: clients would wait for its end. So a turn begins a
few of them, and the others wait in their order for the turns that follow; what clients ask comes in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

A_TURN: Final = 8
"""So many calls are begun in one turn: some milliseconds."""


class CallTurns:
    """A handler behind which calls take turns."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._begun = 0
        """How many were begun since a turn that is known to be over: at least those of this one."""

    async def __call__(self, request: APIRequest) -> Response:
        if self._begun < A_TURN:
            self._begun += 1
            if self._begun == A_TURN:
                asyncio.get_running_loop().call_soon(self._turn)
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return await self._handler(request)

    def _turn(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < A_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else nobody waits for it any more
                turn.set_result(None)
                self._begun += 1
        if self._begun == A_TURN:
            asyncio.get_running_loop().call_soon(self._turn)
