"""DELETE of one object."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import DELETE
from pilothouse.endpoints.delete_options import options_object, read_delete_options
from pilothouse.endpoints.negotiation import TABLE, negotiate
from pilothouse.endpoints.output.objects import entry_response, served_object
from pilothouse.endpoints.output.table import include_object
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_request import attributes_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.spans import step
from pilothouse.machinery.workers import weighed
from pilothouse.net.messages import Response
from pilothouse.registry.rest.deletion import DeleteOptions, validate_delete_options
from pilothouse.registry.store.removal import ValidateDelete
from pilothouse.registry.store.removal import delete as remove
from pilothouse.storage.cacher import Entry


async def delete(scope: ResourceScope, request: APIRequest) -> Response:
    """Delete, and answer with the object or with a Status, as the kind has it."""
    media = negotiate(request, scope.formats, transforms=scope.transforms)
    options = await read_delete_options(request)
    validate_delete_options(options)
    if options.ignore_store_read_error:
        await _delete_unread(scope, request)
    ctx = scope.context(request)
    for warning in scope.strategy.warnings_on_delete(ctx, options.has_policy):
        request.warn(warning)
    admit = deletion_admission(scope, request, ctx, options)
    step("About to delete object from database")
    try:
        entry, gone = await remove(scope.store, ctx, request.info.name, options, admit)
    finally:
        for warning in ctx.warnings:
            request.warn(warning)
    step("Object deleted from database")
    if scope.prepare is not None:
        await scope.prepare([entry])
    if gone and ctx.dry_run and (await _metadata(scope, entry)).get("finalizers"):
        # Nothing is left to wait for, and nothing was written that could be read: kube-apiserver shows an empty object.
        empty = {} if scope.keeps_type else scope.empty
        return object_response(media, {"kind": scope.kind.kind, "apiVersion": scope.api_version, **empty})
    if not gone or scope.strategy.deletion_rules.returns_deleted:
        accepted = not gone and options.orphan_dependents is False
        return await entry_response(scope, request, media, entry, 202 if accepted else 200)
    if media.transform == TABLE:
        include_object(request)  # a Status is no table, but what is said of tables must be right
    return object_response(media, await _success(scope, entry))


async def _success(scope: ResourceScope, entry: Entry) -> Object:
    """The Status of a deletion: what has gone."""
    details = {
        "name": entry.name,
        "group": scope.resource.group,
        "kind": scope.resource.name,
        "uid": (await _metadata(scope, entry)).get("uid"),
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


async def _metadata(scope: ResourceScope, entry: Entry) -> Object:
    """Of an object as it is served."""
    metadata: Object = (await weighed(scope.weight(entry), served_object, scope, entry))["metadata"]
    return metadata


async def _delete_unread(scope: ResourceScope, request: APIRequest) -> None:
    """Refuse to delete an object without reading it: whoever may do so needs not to, for this one can be read."""
    verb, name = "unsafe-delete-ignore-read-errors", request.info.name
    if request.audit is not None:
        request.audit.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", "")
    if not scope.strategy.deletion_rules.deletes_unread:
        why = "no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential"
        raise errors.internal_error(why)
    refusal = None if request.ask is None else await request.ask(request, verb)
    where = scope.resource.group_resource
    if refusal is not None:
        raise errors.forbidden(where, name, f'not permitted to do "{verb}", reason: {refusal.reason}')
    entry = await scope.store.get(request.info.namespace, name)
    why = (
        f"StorageError: invalid object, Code: 4, Key: {entry.key}, ResourceVersion: 0, AdditionalErrorMsg: "
        "unsafe deletion is not allowed because the object is decodable from storage"
    )
    raise errors.conflict(where, name, why)


def deletion_admission(
    scope: ResourceScope, request: APIRequest, ctx: Context, options: DeleteOptions
) -> ValidateDelete | None:
    """Both phases of admission for the deletion of one stored object."""
    admission = scope.admission
    if admission is None or not admission.handles(DELETE):
        return None

    async def admit(stored: Object, weight: int, grace: int | None) -> None:
        told = options_object(replace(options, grace_period_seconds=grace))
        attributes = attributes_of(scope, request, ctx, DELETE, None, stored, told)
        # Requests for a whole collection name nobody, though each object is judged alone.
        attributes.name = request.info.name
        attributes.weight = weight
        await admission.admit(attributes)
        await admission.validate(attributes)

    return admit
