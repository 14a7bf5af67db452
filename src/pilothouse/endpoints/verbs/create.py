"""POST of a new object."""

from __future__ import annotations

from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_request import WriteRequest, note_object
from pilothouse.machinery.spans import step
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.net.messages import Response


async def create(scope: ResourceScope, request: APIRequest) -> Response:
    """Decode, default, check and store; 201."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    obj, options = await read_object(request, scope.expected, scope.known_bodies)
    step("About to convert to expected version")
    weight = request.weight
    obj = scope.defaulted(obj) if weight < LONG else await weighed(weight, scope.defaulted, obj)
    if request.audit is not None:
        await note_object(request.audit, weight, scope, obj)
    step("Conversion done")
    write = WriteRequest(scope, request, options)
    try:
        entry = await write.create(obj)
    finally:
        write.warn()
    return await entry_response(scope, request, media, entry, 201)
