"""Requests that ask to be served as somebody else go on as that user, if the one who asks may."""

from __future__ import annotations

from pilothouse.authz.impersonation import Impersonation, read_headers
from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.authorization import attributes_of
from pilothouse.filters.refusals import refusal
from pilothouse.filters.types import Handler, Serving
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

_PREFIX = b"impersonate-"


def with_impersonation(following: Handler, impersonation: Impersonation) -> Handler:
    """Exchange ``request.user``; 400 for half an identity, 403 for one that may not be taken."""

    def handle(request: APIRequest) -> Serving:
        findings = request.block.findings
        asks = findings.get(impersonation)
        if asks is None:
            asks = findings[impersonation] = any(name.startswith(_PREFIX) for name in request.headers)
        return impersonate(request) if asks else following(request)

    async def impersonate(request: APIRequest) -> Response:
        try:
            wanted = read_headers(request)
            if wanted is None:
                return await following(request)
            found = await impersonation.impersonate(wanted, attributes_of(request))
        except errors.StatusError as error:
            return refusal(request, error)
        request.user = found.user
        if request.audit is not None:
            request.audit.note_impersonation(found.user, found.constraint)
        return await following(request)

    return handle
