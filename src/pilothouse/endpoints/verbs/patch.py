"""PATCH: change part of an object. The patch's media type says how it is to be read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final

from pilothouse.endpoints.identity import check_named
from pilothouse.endpoints.input import read_body
from pilothouse.endpoints.negotiation import is_routed_content, negotiate, unrouted_content
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.patch.apply import applier_for
from pilothouse.endpoints.patch.patchers import patcher_for
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ALL_PATCHES, ResourceScope
from pilothouse.endpoints.write_options import read_write_options
from pilothouse.endpoints.write_request import WriteRequest
from pilothouse.machinery import errors
from pilothouse.machinery.field_manager import FieldManager
from pilothouse.machinery.objects import Object
from pilothouse.machinery.spans import step
from pilothouse.machinery.workers import LONG, aside, finish, weighed
from pilothouse.net.messages import Response

APPLY: Final = "application/apply-patch+yaml"


async def patch(scope: ResourceScope, request: APIRequest) -> Response:
    """Apply the patch to the stored object until no other write comes between."""
    given = request.headers.get(b"content-type", b"").decode("latin-1")
    kind = given.partition(";")[0]
    if kind not in scope.patch_types:
        if scope.patch_types is not ALL_PATCHES or is_routed_content(given, scope.patch_types):
            raise errors.unsupported_media_type(scope.patch_types, kind)
        raise unrouted_content()
    check_named(request)
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    body = await read_body(request)
    options = read_write_options(request, applied=kind == APPLY)
    if request.audit is not None:
        await weighed(request.weight if request.audit.wants_request else 0, request.audit.note_patch, body)
    write = WriteRequest(scope, request, options)
    weight = request.weight
    if options.applied:
        reading: Coroutine[Any, Any, Callable[..., Object]] = applier_for(scope, request, body, options, write)
    else:
        reading = patcher_for(scope, request, kind, body, options)
    patcher = await reading if weight < LONG else await aside(finish, reading, weight=weight)
    fields = _manager_of_applies(scope) if options.applied else None

    async def change(old: dict[str, Any] | None) -> dict[str, Any]:
        if old is None and not options.applied:
            raise errors.not_found(scope.resource.group_resource, request.info.name)
        step("About to apply patch")
        obj: dict[str, Any]
        if fields is None:
            obj = await weighed(write.ctx.weight, patcher, old)
        elif fields.asks:
            obj = await fields.waiting(write.ctx.weight, lambda manager: patcher(old, manager))
        else:
            obj = await weighed(write.ctx.weight, patcher, old, fields)
        uid = obj["metadata"].get("uid")
        if uid and old is None:
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise errors.conflict(scope.resource.group_resource, request.info.name, why)
        return obj

    create = options.applied and (not scope.subresource or scope.strategy.update_rules.allow_create)
    try:
        entry, created = await write.update(request.info.name, change, create=create)
    finally:
        write.warn()
    return await entry_response(scope, request, media, entry, 201 if created else 200)


def _manager_of_applies(scope: ResourceScope) -> FieldManager:
    fields = scope.field_manager
    if fields is None:
        raise errors.generic("FieldManager must be installed to run apply")
    return fields
