"""``Strict-Transport-Security``, as ``--strict-transport-security-directives`` says."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response


def with_strict_transport(following: Handler, directives: Sequence[str]) -> Handler:
    """Add the header to every answer."""
    header = (b"strict-transport-security", "; ".join(directives).encode())

    async def handle(request: APIRequest) -> Response:
        response = await following(request)
        response.headers.append(header)
        return response

    return handle
