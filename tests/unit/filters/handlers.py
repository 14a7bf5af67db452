"""What stands behind a filter in its tests: a handler that does as it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.net.messages import Response

Ask = Callable[..., APIRequest]


def answering(status: int = 200, **more: Any) -> Handler:
    async def handle(request: APIRequest) -> Response:
        return Response(status, **more)

    return handle


def raising(error: BaseException) -> Handler:
    async def handle(request: APIRequest) -> Response:
        raise error

    return handle
