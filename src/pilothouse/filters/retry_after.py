"""While the server stops, new requests are told to come back elsewhere (``--shutdown-send-retry-after``).

Until the requests under way are answered the server goes on listening, so that nobody is refused a connection: load
balancers may take a while to see that it is not ready any more. Health checks, metrics and the server's own requests
are served to the end.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import text_response
from pilothouse.filters.timeout import is_long_running
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

_EXEMPT_PATHS: Final = ("/readyz", "/livez", "/healthz", "/metrics")
_OWN_AGENT: Final = b"kube-apiserver/"
_WORDS: Final = b"The apiserver is shutting down, please try again later.\n"


class Draining:
    """The requests under way that a stop waits for; once it has begun no more are taken."""

    def __init__(self) -> None:
        self.begun = False
        self._under_way = 0
        self._none_left = asyncio.Event()
        self._none_left.set()

    def enter(self) -> None:
        """One more."""
        self._under_way += 1
        self._none_left.clear()

    def leave(self) -> None:
        """One less."""
        self._under_way -= 1
        if not self._under_way:
            self._none_left.set()

    async def drain(self, seconds: float) -> bool:
        """Take no more, and wait until all are answered; False if that takes longer."""
        self.begun = True
        try:
            await asyncio.wait_for(self._none_left.wait(), seconds)
        except TimeoutError:
            return False
        return True


def with_retry_after(following: Handler, draining: Draining) -> Handler:
    """Answer 429 once draining has begun, and close the connection."""

    async def handle(request: APIRequest) -> Response:
        if _is_exempt(request):
            return await following(request)
        if draining.begun:
            response = text_response(429, _WORDS, [(b"retry-after", b"5")])
            response.close = True
            return response
        if is_long_running(request):
            return await following(request)
        draining.enter()
        try:
            return await following(request)
        finally:
            draining.leave()

    return handle


def _is_exempt(request: APIRequest) -> bool:
    return request.path.startswith(_EXEMPT_PATHS) or request.headers.get(b"user-agent", b"").startswith(_OWN_AGENT)
