"""PUT: replace an object, or create it where its kind allows that."""

from __future__ import annotations

from pilothouse.endpoints.identity import check_identity, check_named, check_uid
from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.endpoints.write_request import WriteRequest, has_owners, note_object
from pilothouse.machinery.objects import Object
from pilothouse.machinery.spans import step
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.net.messages import Response


async def update(scope: ResourceScope, request: APIRequest) -> Response:
    """Decode, default, check against the stored object and store; 200, or 201 when it was created."""
    check_named(request)
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    glimpse = scope.glance(request)
    obj, options = await _read(scope, request, None if glimpse is None else glimpse[1])
    weight = request.weight
    if request.audit is not None:
        await note_object(request.audit, weight, scope, obj)
    step("Conversion done")
    check_identity(scope, request, obj)
    write = WriteRequest(scope, request, options)
    if has_owners(obj):
        await weighed(weight, write.merge_owners, obj)
    uid = obj["metadata"].get("uid")
    first: Object | None = obj
    del obj

    async def change(old: Object | None) -> Object:
        """The object as it was sent, read once more should other writes come between."""
        nonlocal first
        if uid:
            check_uid(scope, request, uid, old, dry_run=options.dry_run)
        wanted, first = first, None
        if wanted is None:
            wanted, _ = await _read(scope, request)
            if has_owners(wanted):
                await weighed(weight, write.merge_owners, wanted)
        return wanted

    try:
        entry, created = await write.update(request.info.name, change, glimpse=glimpse)
    finally:
        write.warn()
    return await entry_response(scope, request, media, entry, 201 if created else 200)


async def _read(scope: ResourceScope, request: APIRequest, stored: Object | None = None) -> tuple[Object, WriteOptions]:
    """The body as an object with its defaults, and the options of the write."""
    obj, options = await read_object(request, scope.expected, stored=stored)
    step("About to convert to expected version")
    weight = request.weight
    return scope.defaulted(obj) if weight < LONG else await weighed(weight, scope.defaulted, obj), options
