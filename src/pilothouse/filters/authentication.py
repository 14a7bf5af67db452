"""Who is asking. Nothing behind this filter sees a request without a user."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from pilothouse.authn.authenticator import Authenticated, Authenticator, InvalidCredentials
from pilothouse.authn.loopback import own_identity
from pilothouse.authn.metrics import AuthenticationMetrics
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import error_response
from pilothouse.filters.types import Handler, Serving
from pilothouse.machinery import errors
from pilothouse.machinery.workers import work_for
from pilothouse.net.eager import step
from pilothouse.net.messages import Response

logger = logging.getLogger(__name__)


Note = Callable[[APIRequest, Response], Awaitable[None]]
Asking = Coroutine[Any, Any, Authenticated | None]


def with_authentication(
    following: Handler,
    authenticator: Authenticator,
    note_refusal: Note | None = None,
    metrics: AuthenticationMetrics | None = None,
) -> Handler:
    """Set ``request.user``, or answer 401."""
    authenticate, recall = authenticator.authenticate, getattr(authenticator, "recall", None)
    metrics = metrics or AuthenticationMetrics()
    results, succeeded = metrics.results, metrics.results["success"].observe
    note_user, clock = metrics.note_user, time.perf_counter

    def handle(request: APIRequest) -> Serving:
        if note_refusal is not None:
            request.received = time.time()
        started = clock()
        found = own_identity(request)
        if found is None and recall is not None:
            found = recall(request)
        if found is None:
            try:
                stepped = step(authenticate(request))
            except InvalidCredentials as error:
                return refuse(request, started, error)
            if type(stepped) is not tuple:
                return wait(request, started, cast(Asking, stepped))
            found = stepped[0]
        return go_on(request, started, found)

    async def wait(request: APIRequest, started: float, asking: Asking) -> Response:
        try:
            found = await asking
        except InvalidCredentials as error:
            return await refuse(request, started, error)
        return await go_on(request, started, found)

    def go_on(request: APIRequest, started: float, found: Authenticated | None) -> Serving:
        if found is None:
            return refuse(request, started, None)
        user = request.user = found.user
        request.authentication_seconds = seconds = clock() - started
        succeeded(seconds)
        note_user(user.name)
        work_for(user.name)
        request.connection.authenticated = True
        for warning in found.warnings:
            request.warn(warning)
        if found.annotations:
            request.credential_notes = found.annotations
        return following(request)

    async def refuse(request: APIRequest, started: float, error: InvalidCredentials | None) -> Response:
        if error is not None:
            logger.info("%s %s: unable to authenticate the request: %s", request.method, request.path, error)
            request.credential_notes = error.annotations
        results["failure" if error is None else "error"].observe(clock() - started)
        refusal = error_response(request, errors.unauthorized("Unauthorized"))
        if note_refusal is not None:
            await note_refusal(request, refusal)
        return refusal

    return handle
