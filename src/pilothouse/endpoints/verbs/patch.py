"""PATCH: change part of an object. The patch's media type says how it is to be read."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.endpoints.input import read_body
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import entry_response
from pilothouse.endpoints.patch.patchers import Patcher, patcher_for
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import read_write_options
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


async def patch(scope: ResourceScope, request: APIRequest) -> Response:
    """Apply the patch to the stored object until no other write comes between."""
    media = negotiate(request, scope.formats, transforms=True)
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].decode("latin-1")
    options = read_write_options(request)
    body = await read_body(request)
    patcher: Patcher = patcher_for(scope, request, kind, body, options)
    ctx = scope.context(request)
    ctx.dry_run = options.dry_run

    async def change(old: dict[str, Any] | None) -> dict[str, Any]:
        if old is None:
            raise errors.not_found(scope.resource.group_resource, request.info.name)
        return patcher(old)

    try:
        entry, created = await scope.store.update(
            ctx, request.info.name, change, strategy=scope.strategy, create=False
        )
    finally:
        for warning in ctx.warnings:
            request.warn(warning)
    return entry_response(scope, request, media, entry, 201 if created else 200)
