"""The type every filter takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from pilothouse.endpoints.request import APIRequest
from pilothouse.net.messages import Response

Serving = Coroutine[Any, Any, Response]
Handler = Callable[[APIRequest], Serving]
"""A filter with nothing left to do once it hands a request on is a function that gives the coroutine of the next."""


async def answered(response: Response) -> Response:
    """For such a function that has the answer itself."""
    return response
