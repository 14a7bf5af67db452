"""Reads what the request is about, once, for everybody behind.

A read of one object waits for etcd's word on how far it is, the longest part of a lone client's time. So the question
is sent ahead from here (``foresee``), and answered while the request goes through the other filters. That is done for
connections on which an object was read before: nobody who may read nothing has etcd asked.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.request_info import BadPath, RequestInfo, resolve
from pilothouse.filters.refusals import undecided
from pilothouse.filters.types import Handler, Serving, answered
from pilothouse.machinery.workers import LONG, aside
from pilothouse.net.messages import Response
from pilothouse.storage.backends.contract import Foreseen

Foresee = Callable[[str, str], Foreseen | None]
"""Of the store that the resource of a group is kept in."""


def with_request_info(following: Handler, foresee: Foresee | None = None) -> Handler:
    """Set ``request.info``."""

    def handle(request: APIRequest) -> Serving:
        kept = request.line.reading
        if type(kept) is RequestInfo:
            request.recall(kept)
            if foresee is not None and _is_read(kept, request) and request.connection.reads:
                request.foreseen = foresee(kept.group, kept.resource)
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


def _is_read(info: RequestInfo, request: APIRequest) -> bool:
    """Whether it reads one object as new as the store."""
    return info.verb == "get" and bool(info.name) and not request.query


def _refuse(request: APIRequest, error: BadPath) -> Response:
    return undecided(request, f"failed to create RequestInfo: {error}, {request.target.decode(errors='replace')}")


def _resolve(request: APIRequest) -> RequestInfo:
    """Reads the query as well, which is kept with the request."""
    return resolve(request.method, request.path, request.options)
