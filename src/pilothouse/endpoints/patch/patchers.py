"""From a patch's bytes to a function that changes a stored object.

A patcher works on the object as the endpoint's version shows it, decodes the result by schema like any body, and gives a
hub object back. It may be called again with a newer object when another write came between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from pilothouse.endpoints.input import report
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.machinery import errors, go_json, json_patch, merge_patch
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.schema.decoding import DecodeError, decode, found

Patcher = Callable[[dict[str, Any]], dict[str, Any]]
Apply = Callable[[dict[str, Any]], Any]
SUPPORTED: Final = ("application/json-patch+json", "application/merge-patch+json")


def patcher_for(
    scope: ResourceScope, request: APIRequest, kind: str, body: bytes, options: WriteOptions
) -> Patcher:
    """The patcher for a media type; 415 for one that this endpoint does not take."""
    if kind == "application/json-patch+json":
        apply = _json_patch(body)
    elif kind == "application/merge-patch+json":
        apply = _merge_patch(body)
    else:
        raise errors.unsupported_media_type(SUPPORTED, kind)
    return lambda old: finish(scope, request, options, apply(scope.served_object(old)))


def finish(scope: ResourceScope, request: APIRequest, options: WriteOptions, result: Any) -> dict[str, Any]:
    """The patched object, decoded like a body, in the hub version and with defaults."""
    try:
        obj, unknown = decode(scope.expected.struct, result)
    except DecodeError as error:
        raise undecodable(result, str(error)) from None
    report(request, options.validation, scope.expected, result, b"", unknown)
    obj = scope.hub_object(obj)
    scope.strategy.default(obj)
    return obj


def undecodable(result: Any, why: str) -> errors.StatusError:
    """The 422 for a patch whose result is no object of the kind: it shows the whole result."""
    shown = orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode()
    return errors.invalid(GroupKind("", ""), "", [invalid(Path("patch"), shown, why)])


def _parse(body: bytes, want: type, go: str) -> Any:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise errors.bad_request(f"error decoding patch: {go_json.explain(body)}") from None
    if not isinstance(value, want):
        why = f"json: cannot unmarshal {found(value)} into Go value of type {go}"
        raise errors.bad_request(f"error decoding patch: {why}")
    return value


def _json_patch(body: bytes) -> Apply:
    operations = _parse(body, list, "[]handlers.jsonPatchOp")
    return lambda document: json_patch.apply(document, operations)


def _merge_patch(body: bytes) -> Apply:
    value = _parse(body, dict, "map[string]interface {}")
    return lambda document: merge_patch.apply(document, value)
