"""What every answer carries, whatever it is: the request's id, warnings, and that nothing in between may keep it.

One filter for the three, and the outermost: each of its own would cost every request another coroutine.
"""

from __future__ import annotations

from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.audit_id import audit_id_of
from pilothouse.filters.types import Handler, Serving
from pilothouse.filters.warnings import warning_headers
from pilothouse.net.messages import Response

_MAX_ID_LENGTH: Final = 64
_NO_CACHE: Final = (b"cache-control", b"no-cache, private")


def with_answer_headers(following: Handler) -> Handler:
    """Give the request its id, and add to the answer what there is to say."""

    async def handle(request: APIRequest) -> Response:
        request.audit_id = audit_id_of(request)
        response = await following(request)
        if response.upgrade is not None:  # what takes the connection over says all there is to say
            return response
        headers = response.headers
        if request.is_private:
            for name, _ in headers:
                if name == b"cache-control":
                    break
            else:
                headers.append(_NO_CACHE)
        if request.warnings:
            headers += warning_headers(request.warnings)
        headers.append((b"audit-id", request.audit_id[:_MAX_ID_LENGTH].encode("latin-1")))
        return response

    return handle


def with_cache_control(following: Handler) -> Handler:
    """From here on answers are not to be cached by anything between client and server, unless an endpoint says so."""

    def handle(request: APIRequest) -> Serving:
        request.is_private = True
        return following(request)

    return handle
