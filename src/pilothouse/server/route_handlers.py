"""What serves a path, and what refuses requests before it: of another method, or in forms that it does not have."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from pilothouse.endpoints.negotiation import ALL_FORMATS, PLAIN_JSON, is_routed_content, unrouted_content
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

RouteHandler = Callable[[APIRequest], Coroutine[Any, Any, Response]]


def only_get(handler: RouteHandler) -> RouteHandler:
    """Refuse every method but GET with a 405 Status."""

    async def serve(request: APIRequest) -> Response:
        if request.method != "GET":
            return error_response(request, errors.method_not_allowed())
        return await handler(request)

    return serve


def only_json(handler: RouteHandler) -> RouteHandler:
    """Refuse clients that do not take JSON with a 406."""

    async def serve(request: APIRequest) -> Response:
        accept = request.headers.get(b"accept") or b"*/*"
        if not any(part.partition(b";")[0].strip() in (b"application/json", b"*/*") for part in accept.split(b",")):
            why = "406: Not Acceptable\n\nAvailable representations: application/json"
            return error_response(request, errors.StatusError(406, "NotAcceptable", why, {}))
        return await handler(request)

    return serve


def only_content(handler: RouteHandler, formats: tuple[str, ...] = ALL_FORMATS) -> RouteHandler:
    """Refuse requests that say they bring something else with the router's 415, though nothing is read."""

    async def serve(request: APIRequest) -> Response:
        given = request.headers.get(b"content-type", b"").decode("latin-1")
        if given and not is_routed_content(given, formats):
            return error_response(request, unrouted_content())
        return await handler(request)

    return serve


def json_route(make: Callable[[], dict[str, Any]]) -> RouteHandler:
    """Serve a document that is made anew for each request."""

    async def serve(request: APIRequest) -> Response:
        body = orjson.dumps(make(), option=orjson.OPT_INDENT_2)
        return Response(200, body, PLAIN_JSON.content_type)

    return serve
