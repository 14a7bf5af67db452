"""PUT: replace an object, or create it where its kind allows that."""

from __future__ import annotations

from typing import Any

from pilothouse.endpoints.identity import check_identity, check_named, check_uid
from pilothouse.endpoints.input import read_object
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_request import WriteRequest, has_owners, note_object
from pilothouse.machinery import large_json
from pilothouse.machinery.schema.emptied import copy_noted
from pilothouse.machinery.spans import step
from pilothouse.machinery.workers import LONG, weighed
from pilothouse.net.messages import Response


async def update(scope: ResourceScope, request: APIRequest) -> Response:
    """Decode, default, check against the stored object and store; 200, or 201 when it was created."""
    check_named(request)
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    obj, options = await read_object(request, scope.expected)
    step("About to convert to expected version")
    weight = request.weight
    obj = scope.defaulted(obj) if weight < LONG else await weighed(weight, scope.defaulted, obj)
    if request.audit is not None:
        await note_object(request.audit, weight, scope, obj)
    step("Conversion done")
    check_identity(scope, request, obj)
    write = WriteRequest(scope, request, options)
    if has_owners(obj):
        await weighed(weight, write.merge_owners, obj)
    uid = obj["metadata"].get("uid")
    first: dict[str, Any] | None = obj if obj.__class__ is dict else None
    pristine = b"" if first is None else await weighed(weight, large_json.dumps, obj)

    async def change(old: dict[str, Any] | None) -> dict[str, Any]:
        """The object as it was sent; copies of it, should other writes come between."""
        nonlocal first
        if uid:
            check_uid(scope, request, uid, old, dry_run=options.dry_run)
        if not pristine:
            return await weighed(weight, copy_noted, obj)
        wanted, first = first, None
        return await weighed(weight, large_json.loads, pristine) if wanted is None else wanted

    try:
        entry, created = await write.update(request.info.name, change)
    finally:
        write.warn()
    return await entry_response(scope, request, media, entry, 201 if created else 200)
