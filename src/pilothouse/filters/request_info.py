"""Reads what the request is about, once, for everybody behind."""

from __future__ import annotations

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import BadPath, RequestInfo, resolve
from pilothouse.filters.refusals import undecided
from pilothouse.filters.types import Handler, Serving, answered
from pilothouse.machinery.workers import LONG, aside
from pilothouse.net.messages import Response


def with_request_info(following: Handler) -> Handler:
    """Set ``request.info``."""

    def handle(request: APIRequest) -> Serving:
        kept = request.line.reading
        if type(kept) is RequestInfo:
            request.recall(kept)
            return following(request)
        if len(request.query) >= LONG:
            return handle_long(request)
        try:
            request.info = request.line.reading = _resolve(request)
        except BadPath as error:
            return answered(_refuse(request, error))
        return following(request)

    async def handle_long(request: APIRequest) -> Response:
        try:
            request.info = await aside(_resolve, request, weight=len(request.query))
        except BadPath as error:
            return _refuse(request, error)
        return await following(request)

    return handle


def _refuse(request: APIRequest, error: BadPath) -> Response:
    return undecided(request, f"failed to create RequestInfo: {error}")


def _resolve(request: APIRequest) -> RequestInfo:
    """Reads the query as well, which is kept with the request."""
    return resolve(request.method, request.path, request.options)
