"""GET of one object."""

from __future__ import annotations

from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import errors
from pilothouse.net.messages import Response


async def get(scope: ResourceScope, request: APIRequest) -> Response:
    """Serve the object from the cache, at least as fresh as the client asks."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    info = request.info
    if request.query and request.options.boolean("export"):
        raise errors.bad_request("the export parameter, deprecated since v1.14, is no longer supported")
    version = request.options.text("resourceVersion") if request.query else ""
    entry = await scope.store.get(info.namespace, info.name, version, request.foreseen)
    request.connection.reads = True
    return await entry_response(scope, request, media, entry)
