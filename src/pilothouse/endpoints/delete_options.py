"""DeleteOptions: read from a request's body or, without one, from its query; and as an object that admission sees."""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis import types
from pilothouse.endpoints.expected import read_type_meta, versionless
from pilothouse.endpoints.input import content_format, parse_json, read_body
from pilothouse.endpoints.negotiation import ALL_FORMATS, JSON, PROTOBUF
from pilothouse.endpoints.offloading import offload
from pilothouse.endpoints.request import APIRequest
from pilothouse.machinery import errors, go_json
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import parse_group_version
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.types import Struct
from pilothouse.registry.rest.deletion import DeleteOptions

_GROUP: Final = "meta.k8s.io"
_SCHEME: Final = "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27"
_AUDITED_VERSION: Final = "meta.k8s.io/__internal"
"""What the audit log of kube-apiserver calls the version of options, whichever one was sent."""


async def read_delete_options(request: APIRequest) -> DeleteOptions:
    """Read DeleteOptions; a body wins over the query."""
    body = await read_body(request)
    if body:
        return options_from(await _from_body(request, body))
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


async def _from_body(request: APIRequest, body: bytes) -> Object:
    """The options as an object. Raises the 400 for what is none."""
    format, struct = content_format(request, ALL_FORMATS), types.struct("meta.v1.DeleteOptions")
    value = await _parse(body, format, struct)
    if value is None:
        value = {}
    _check_kind(value, body)
    try:
        obj, _ = decode(struct, value)
    except DecodeError as error:
        error.found = go_json.as_written(error.found, body if format == JSON else b"")
        raise errors.bad_request(str(error)) from None
    if request.audit is not None:
        request.audit.note_object({"kind": "DeleteOptions", **obj, "apiVersion": _AUDITED_VERSION})
    return obj


async def _parse(body: bytes, format: str, struct: Struct) -> Any:
    if format == JSON:
        try:
            return await parse_json(body, errors.bad_request)
        except go_json.BeyondFloats as error:
            return error.value
    try:
        if format == PROTOBUF:
            from pilothouse.machinery import protobuf

            return protobuf.decode_message(struct, protobuf.decode(body).raw)
        from pilothouse.machinery import yaml_codec

        return await offload(yaml_codec.load, body)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None


def _check_kind(value: Any, body: bytes) -> None:
    try:
        kind, version = read_type_meta(value)
        stated = parse_group_version(version)
    except ValueError as error:
        raise errors.bad_request(str(error)) from None
    if not stated.version and stated.group not in ("", _GROUP):
        raise errors.bad_request(versionless(body))
    if kind and kind != "DeleteOptions":
        at = value.get("apiVersion") or "meta.k8s.io/v1"
        what = f"no kind {quote(kind)} is registered for version {quote(at)}"
        raise errors.bad_request(f"{what} in scheme {quote(_SCHEME)}")
