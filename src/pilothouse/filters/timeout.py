"""Requests not meant to last are ended with a 504 after ``--request-timeout``, or earlier if ``?timeout`` says so.

Writes have less time, and say so in other words: kube-apiserver bounds each of them by itself.

The deadline is only noted here. A request that never waits cannot time out, so the server below looks at deadlines of
waiting requests alone and cancels those; the cancellation arrives here and becomes the answer.
"""

from __future__ import annotations

import asyncio
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.machinery.times import parse_duration
from pilothouse.net.messages import Response

WRITE_SECONDS: Final = 34.0
_WRITES: Final = frozenset({"create", "update", "patch", "delete"})
"""Verbs that kube-apiserver bounds by themselves: deleting a collection may take as long as listing it."""
_WRITE_TIMED_OUT: Final = "request did not complete within requested timeout - context deadline exceeded"
_STREAMING: Final = frozenset({"attach", "exec", "log", "portforward", "proxy"})


def is_long_running(request: APIRequest) -> bool:
    """Watches, proxies, logs and the streams into containers last as long as they last."""
    info = request.info
    if info.is_resource:
        return info.verb in ("watch", "proxy") or info.subresource in _STREAMING
    return request.path.startswith("/debug/pprof/")


def allotted_seconds(asked: str, limit: float) -> float:
    """What the client asked for, where that is less than the limit; raises ``ValueError`` for what is no duration."""
    wanted = parse_duration(asked) / 1e9 if asked else 0.0
    return wanted if 0 < wanted < limit else limit


def with_timeout(following: Handler, seconds: float, watch_seconds: int = 1800) -> Handler:
    """Bound the time of ordinary requests, and say how long watches last that do not say so themselves."""
    loop_time = asyncio.get_running_loop().time

    async def handle(request: APIRequest) -> Response:
        if is_long_running(request):
            request.watch_seconds = watch_seconds
            return await following(request)
        allotted = seconds
        if "timeout" in request.query:
            try:
                allotted = allotted_seconds(request.options.text("timeout"), seconds)
            except ValueError as error:
                why = f"invalid timeout specified in the request URL - {error}"
                return error_response(request, errors.bad_request(why))
        is_write = request.info.is_resource and request.info.verb in _WRITES and allotted > WRITE_SECONDS
        request.deadline = loop_time() + (WRITE_SECONDS if is_write else allotted)
        try:
            return await following(request)
        except asyncio.CancelledError:
            if not request.timed_out:
                raise
            why = _WRITE_TIMED_OUT if is_write else "request did not complete within the allotted timeout"
            return error_response(request, errors.timeout(why, 0))

    return handle
