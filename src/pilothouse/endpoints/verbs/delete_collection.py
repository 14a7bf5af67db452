"""DELETE of a collection: everything a selector matches, one by one. Answers with what was there."""

from __future__ import annotations

from pilothouse.endpoints.delete_options import read_delete_options
from pilothouse.endpoints.list_options import list_options
from pilothouse.endpoints.negotiation import negotiate
from pilothouse.endpoints.output.objects import list_response
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.verbs.delete import deletion_admission
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import invalid
from pilothouse.machinery.gvk import GroupKind
from pilothouse.net.messages import Response
from pilothouse.registry.rest.deletion import IGNORING, validate_delete_options
from pilothouse.registry.store.listing import list_entries
from pilothouse.registry.store.removal import delete_all


async def delete_collection(scope: ResourceScope, request: APIRequest) -> Response:
    """List, then delete each. Where an empty namespace is named, those of all are listed and none is deleted."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    options, _ = await list_options(scope, request)
    deletion = await read_delete_options(request)
    validate_delete_options(deletion)
    if deletion.ignore_store_read_error:
        why = "is not allowed with DELETECOLLECTION, try again after removing the option"
        raise errors.invalid(GroupKind("meta.k8s.io", "DeleteOptions"), "", [invalid(IGNORING, True, why)])
    for warning in scope.strategy.warnings_on_delete(scope.context(request), deletion.has_policy):
        request.warn(warning)
    page = await list_entries(scope.store, request.info.namespace, options)
    if page.entries and scope.resource.namespaced and not request.info.namespace:
        raise errors.bad_request("Namespace parameter required.")
    if scope.prepare is not None:
        await scope.prepare(page.entries)
    ctx = scope.context(request)
    try:
        await delete_all(scope.store, ctx, page.entries, deletion, deletion_admission(scope, request, ctx, deletion))
    finally:
        for warning in ctx.warnings:
            request.warn(warning)
    return await list_response(scope, request, media, page.entries, page.revision, page.token, page.remaining)
