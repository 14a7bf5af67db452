"""GET of one object."""

from __future__ import annotations

from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.net.messages import Response


async def get(scope: ResourceScope, request: APIRequest) -> Response:
    """Serve the object from the cache, at least as fresh as the client asks."""
    media = negotiate(request, scope.formats, transforms=True)
    info = request.info
    version = request.options.text("resourceVersion") if request.query else ""
    entry = await scope.store.get(info.namespace, info.name, version)
    return entry_response(scope, request, media, entry)
