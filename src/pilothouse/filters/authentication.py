"""Who is asking. Nothing behind this filter sees a request without a user."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from pilothouse.authn.authenticator import Authenticator, InvalidCredentials
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responding import error_response
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

logger = logging.getLogger(__name__)


Note = Callable[[APIRequest, Response], Awaitable[None]]


def with_authentication(following: Handler, authenticator: Authenticator, note_refusal: Note | None = None) -> Handler:
    """Set ``request.user``, or answer 401."""
    authenticate = authenticator.authenticate

    async def handle(request: APIRequest) -> Response:
        try:
            found = await authenticate(request)
        except InvalidCredentials as error:
            logger.info("%s %s: unable to authenticate the request: %s", request.method, request.path, error)
            found = None
        if found is None:
            refusal = error_response(request, errors.unauthorized("Unauthorized"))
            if note_refusal is not None:
                await note_refusal(request, refusal)
            return refusal
        request.user = found.user
        request.connection.authenticated = True
        for warning in found.warnings:
            request.warn(warning)
        if found.annotations:
            request.credential_notes = found.annotations
        return await following(request)

    return handle
