"""Answers are never to be cached by anything between client and server, unless an endpoint says otherwise."""

from __future__ import annotations

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

_HEADER = (b"cache-control", b"no-cache, private")


def with_cache_control(following: Handler) -> Handler:
    """Add the header where none is set."""

    async def handle(request: APIRequest) -> Response:
        response = await following(request)
        if response.upgrade is None:
            for name, _ in response.headers:
                if name == b"cache-control":
                    break
            else:
                response.headers.append(_HEADER)
        return response

    return handle
