"""Cross-origin requests from the browsers that ``--cors-allowed-origins`` lets in."""

from __future__ import annotations

from collections.abc import Sequence

import re2

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

_METHODS = b"POST, GET, OPTIONS, PUT, DELETE, PATCH"
_HEADERS = (
    b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)


def with_cors(following: Handler, origins: Sequence[str]) -> Handler:
    """Answer preflight requests and mark answers to allowed origins."""
    patterns = [re2.compile(origin) for origin in origins]

    async def handle(request: APIRequest) -> Response:
        origin = request.headers.get(b"origin")
        if not origin or not any(p.search(origin.decode("latin-1")) for p in patterns):
            return await following(request)
        headers = [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _HEADERS),
            (b"access-control-expose-headers", b"Date"),
            (b"access-control-allow-credentials", b"true"),
        ]
        if request.method == "OPTIONS":
            return Response(204, b"", b"", headers)
        response = await following(request)
        response.headers += headers
        return response

    return handle
