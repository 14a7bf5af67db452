"""Requests that are not meant to last are ended after ``--request-timeout`` with a 504.

The deadline is only noted here. A request that never waits cannot time out, so the server below looks at deadlines of waiting
requests alone and cancels those; the cancellation arrives here and becomes the answer.
"""

from __future__ import annotations

import asyncio

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responding import error_response
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

_STREAMING = frozenset({"attach", "exec", "log", "portforward", "proxy"})


def is_long_running(request: APIRequest) -> bool:
    """Watches, proxies, logs and the streams into containers last as long as they last."""
    info = request.info
    if info.is_resource:
        return info.verb in ("watch", "proxy") or info.subresource in _STREAMING
    return request.path.startswith("/debug/pprof/")


def with_timeout(following: Handler, seconds: float) -> Handler:
    """Bound the time of ordinary requests."""
    loop_time = asyncio.get_running_loop().time

    async def handle(request: APIRequest) -> Response:
        if is_long_running(request):
            return await following(request)
        request.deadline = loop_time() + seconds
        try:
            return await following(request)
        except asyncio.CancelledError:
            if not request.timed_out:
                raise
            why = "request did not complete within the allotted timeout"
            return error_response(request, errors.timeout(why, 0))

    return handle
