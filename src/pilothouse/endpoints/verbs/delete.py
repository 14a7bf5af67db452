"""DELETE of one object. Options come in the body or, without one, in the query."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.strategy import Context
from pilothouse.endpoints.admission import DELETE
from pilothouse.endpoints.input import content_format, parse_json, read_body, read_type_meta, versionless
from pilothouse.endpoints.negotiation import ALL_FORMATS, JSON, PROTOBUF, TABLE, negotiate
from pilothouse.endpoints.offloading import offload
from pilothouse.endpoints.output.objects import entry_response, served_object
from pilothouse.endpoints.output.table import include_object
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.responses import object_response
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_request import attributes_of
from pilothouse.machinery import errors, go_json
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.spans import step
from pilothouse.machinery.workers import weighed
from pilothouse.net.messages import Response
from pilothouse.registry.rest.deletion import DeleteOptions, validate_delete_options
from pilothouse.registry.store.removal import ValidateDelete
from pilothouse.registry.store.removal import delete as remove
from pilothouse.storage.cacher import Entry

_OPTIONS_GROUP: Final = "meta.k8s.io"
_OPTIONS_SCHEME: Final = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_AUDITED_VERSION: Final = "meta.k8s.io/__internal"
"""What the audit log of kube-apiserver calls the version of options, whichever one was sent."""


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
    details = {
        "name": entry.name,
        "group": scope.resource.group,
        "kind": scope.resource.name,
        "uid": (await _metadata(scope, entry)).get("uid"),
    }
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
    if media.transform == TABLE:
        include_object(request)  # a Status is no table, but what is said of tables must be right
    return object_response(media, status)


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


def options_object(options: DeleteOptions) -> Object:
    """The options as an API object, without what was left open."""
    conditions = {"uid": options.precondition_uid, "resourceVersion": options.precondition_version}
    named = {key: value for key, value in conditions.items() if value is not None}
    fields = {
        "gracePeriodSeconds": options.grace_period_seconds,
        "preconditions": named if options.has_preconditions else None,
        "orphanDependents": options.orphan_dependents,
        "propagationPolicy": options.propagation_policy,
        "dryRun": options.dry_run or None,
        "ignoreStoreReadErrorWithClusterBreakingPotential": options.ignore_store_read_error or None,
    }
    given = {key: value for key, value in fields.items() if value is not None}
    return {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **given}


async def read_delete_options(request: APIRequest) -> DeleteOptions:
    """Read DeleteOptions; a body wins over the query."""
    body = await read_body(request)
    if body:
        return await _from_body(request, body)
    if not request.query:
        return DeleteOptions()
    query = request.options
    return DeleteOptions(
        grace_period_seconds=query.integer("gracePeriodSeconds"),
        orphan_dependents=query.optional_boolean("orphanDependents"),
        propagation_policy=query.first("propagationPolicy"),
        precondition_uid=query.text("uid") or None,
        precondition_version=query.text("resourceVersion") or None,
        dry_run=query.all("dryRun"),
        ignore_store_read_error=query.boolean("ignoreStoreReadErrorWithClusterBreakingPotential"),
    )


async def _from_body(request: APIRequest, body: bytes) -> DeleteOptions:
    format = content_format(request, ALL_FORMATS)
    struct = types.struct("meta.v1.DeleteOptions")
    if format == PROTOBUF:
        from pilothouse.machinery import protobuf

        try:
            value: Any = protobuf.decode_message(struct, protobuf.decode(body).raw)
        except ValueError as error:
            raise errors.bad_request(str(error)) from None
    elif format == JSON:
        try:
            value = await parse_json(body, errors.bad_request)
        except go_json.BeyondFloats as error:
            value = error.value
    else:
        from pilothouse.machinery import yaml_codec

        try:
            value = await offload(yaml_codec.load, body)
        except ValueError as error:
            raise errors.bad_request(str(error)) from None
    if value is None:
        value = {}
    try:
        kind, version = read_type_meta(value)
        stated = parse_group_version(version)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    if not stated.version and stated.group not in ("", _OPTIONS_GROUP):
        raise errors.bad_request(versionless(body))
    if kind and kind != "DeleteOptions":
        at = value.get("apiVersion") or "meta.k8s.io/v1"
        what = f"no kind {quote(kind)} is registered for version {quote(at)}"
        raise errors.bad_request(f"{what} in scheme {quote(_OPTIONS_SCHEME)}")
    try:
        obj, _ = decode(struct, value)
    except DecodeError as error:
        error.found = go_json.as_written(error.found, body if format == JSON else b"")
        raise errors.bad_request(str(error)) from None
    if request.audit is not None:
        request.audit.note_object({"kind": "DeleteOptions", **obj, "apiVersion": _AUDITED_VERSION})
    return options_from(obj)


def options_from(obj: Object) -> DeleteOptions:
    """What a DeleteOptions object says."""
    preconditions = obj.get("preconditions") or {}
    return DeleteOptions(
        grace_period_seconds=obj.get("gracePeriodSeconds"),
        orphan_dependents=obj.get("orphanDependents"),
        propagation_policy=obj.get("propagationPolicy"),
        precondition_uid=preconditions.get("uid"),
        precondition_version=preconditions.get("resourceVersion"),
        names_preconditions="preconditions" in obj,
        dry_run=obj.get("dryRun") or [],
        ignore_store_read_error=bool(obj.get("ignoreStoreReadErrorWithClusterBreakingPotential")),
    )
