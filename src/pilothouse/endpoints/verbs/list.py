"""GET of a collection."""

from __future__ import annotations

from pilothouse.endpoints.list_options import list_options
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import list_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery.spans import Span
from pilothouse.net.messages import Response
from pilothouse.registry.store.listing import list_entries


async def list_(scope: ResourceScope, request: APIRequest) -> Response:
    """Serve a page from the cache, or from history when the page belongs to the past."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    options, _ = await list_options(scope, request)
    if scope.store.converts and options.is_cached:
        await scope.store.wait_initialized()
    with Span("cacher.GetList", {"type": scope.resource.name}) as span:
        page = await list_entries(scope.store, request.info.namespace, options)
        span.step("Filtered items", {"count": len(page.entries)})
    if scope.prepare is not None:
        await scope.prepare(page.entries)
    with Span("SerializeObject"):
        return await list_response(scope, request, media, page.entries, page.revision, page.token, page.remaining)
