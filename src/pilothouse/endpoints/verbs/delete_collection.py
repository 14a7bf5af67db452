"""DELETE of a collection: everything a selector matches, one by one. Answers with what was there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

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
from pilothouse.registry.store.listing import Listing, ListOptions, list_entries
from pilothouse.registry.store.removal import delete_all

_PAGE: Final = 10_000


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
    page = await _listed(scope, request.info.namespace, options)
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


async def _listed(scope: ResourceScope, namespace: str, options: ListOptions) -> Listing:
    """What is to go. kube-apiserver lists in pages, and then a version means that very moment, limit or not."""
    if options.version in ("", "0") or options.match or options.limit or options.token:
        return await list_entries(scope.store, namespace, options)
    first = page = await list_entries(scope.store, namespace, replace(options, limit=_PAGE))
    entries = list(first.entries)
    while page.token:
        page = await list_entries(scope.store, namespace, replace(options, limit=_PAGE, token=page.token, version=""))
        entries += page.entries
    return replace(first, entries=entries)
