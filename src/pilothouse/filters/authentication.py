"""Who is asking. Nothing behind this filter sees a request without a user."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from pilothouse.authn.authenticator import Authenticator, InvalidCredentials
from pilothouse.authn.loopback import own_identity
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

logger = logging.getLogger(__name__)


Note = Callable[[APIRequest, Response], Awaitable[None]]


def with_authentication(
    following: Handler,
    authenticator: Authenticator,
    note_refusal: Note | None = None,
    metrics: AuthenticationMetrics | None = None,
) -> Handler:
    """Set ``request.user``, or answer 401."""
    authenticate = authenticator.authenticate
    metrics = metrics or AuthenticationMetrics()
    results, succeeded = metrics.results, metrics.results["success"].observe
    note_user, clock = metrics.note_user, time.perf_counter

    async def handle(request: APIRequest) -> Response:
        if note_refusal is not None:
            request.received = time.time()
        started = clock()
        result = "failure"
        try:
            found = await authenticate(request) if (own := own_identity(request)) is None else own
        except InvalidCredentials as error:
            logger.info("%s %s: unable to authenticate the request: %s", request.method, request.path, error)
            found, result = None, "error"
            request.credential_notes = error.annotations
        if found is None:
            results[result].observe(clock() - started)
            refusal = error_response(request, errors.unauthorized("Unauthorized"))
            if note_refusal is not None:
                await note_refusal(request, refusal)
            return refusal
        user = request.user = found.user
        request.authentication_seconds = seconds = clock() - started
        succeeded(seconds)
        note_user(user.name)
        request.connection.authenticated = True
        for warning in found.warnings:
            request.warn(warning)
        if found.annotations:
            request.credential_notes = found.annotations
        return await following(request)

    return handle
