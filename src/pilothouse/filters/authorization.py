"""Whether the user may. Everything that is not allowed is a 403 that says what was missing."""

from __future__ import annotations

from pilothouse.authz.attributes import Attributes
from pilothouse.authz.authorizer import AuthorizationFailed, Authorizer, Decision, forbidden
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responding import error_response
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response


def with_authorization(following: Handler, authorizer: Authorizer) -> Handler:
    """Ask the authorizer, then go on or refuse."""
    authorize = authorizer.authorize

    async def handle(request: APIRequest) -> Response:
        attributes = attributes_of(request)
        try:
            decision, reason = await authorize(attributes)
        except AuthorizationFailed as failure:
            return error_response(request, errors.internal_error(str(failure)))
        if decision is Decision.ALLOW:
            request.authorized_by = reason
            return await following(request)
        return error_response(request, forbidden(attributes, reason))

    return handle


def attributes_of(request: APIRequest) -> Attributes:
    """What the authorizer is asked about."""
    info = request.info
    return Attributes(
        user=request.user,
        verb=info.verb,
        namespace=info.namespace,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        name=info.name,
        resource_request=info.is_resource,
        path=info.path,
    )
