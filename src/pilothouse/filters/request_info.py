"""Reads what the request is about, once, for everybody behind."""

from __future__ import annotations

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import BadPath, resolve
from pilothouse.filters.refusing import undecided
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response


def with_request_info(following: Handler) -> Handler:
    """Set ``request.info``."""

    async def handle(request: APIRequest) -> Response:
        try:
            request.info = resolve(request.method, request.path, request.options)
        except BadPath as error:
            return undecided(request, f"failed to create RequestInfo: {error}")
        return await following(request)

    return handle
