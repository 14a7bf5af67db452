"""From a patch's bytes to a function that changes a stored object.

A patcher works on the object as the endpoint's version shows it, decodes the result by schema like any body, and gives a
hub object back. It may be called again with a newer object when another write came between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.endpoints.input import strict_faults
from pilothouse.endpoints.patch.patch_schema import patch_schema
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.machinery import errors, go_json, go_quote, json_patch, merge_patch
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.merge import strategic
from pilothouse.machinery.schema.decoding import DecodeError, decode, found

Patcher = Callable[[dict[str, Any] | None], dict[str, Any]]
Apply = Callable[[dict[str, Any]], Any]
_REJECTED = "the server rejected our request due to an error in our request"


def patcher_for(scope: ResourceScope, request: APIRequest, kind: str, body: bytes, options: WriteOptions) -> Patcher:
    """The patcher for a media type that the endpoint takes."""
    if kind == "application/json-patch+json":
        apply, shown = _json_patch(body), ""
    elif kind == "application/merge-patch+json":
        apply, shown = _merge_patch(body), ""
    else:
        patch = _parse(body, dict, "map[string]interface {}")
        apply, shown = _strategic(scope, patch), go_quote.show(patch)

    def patcher(old: dict[str, Any] | None) -> dict[str, Any]:
        assert old is not None
        return _finish(scope, request, options, apply(scope.served_object(old)), shown)

    return patcher


def _finish(
    scope: ResourceScope, request: APIRequest, options: WriteOptions, result: Any, shown: str
) -> dict[str, Any]:
    """The patched object, decoded like a body, in the hub version and with defaults."""
    try:
        obj, unknown = decode(scope.expected.struct, result)
    except DecodeError as error:
        raise undecodable(shown or _whole(result), str(error)) from None
    if unknown and options.validation != "Ignore":
        faults = strict_faults(scope.expected, result)
        if options.validation == "Strict":
            raise undecodable(shown or _whole(result), "strict decoding error: " + ", ".join(faults))
        for fault in faults:
            request.warn(fault)
    obj = scope.hub_object(obj)
    scope.strategy.default(obj)
    return obj


def _whole(result: Any) -> str:
    return orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode()


def undecodable(shown: str, why: str) -> errors.StatusError:
    """The 422 for a patch whose result is no object of the kind: it shows the whole result, or the patch."""
    return errors.invalid(GroupKind("", ""), "", [invalid(Path("patch"), shown, why)])


def _parse(body: bytes, want: type, go: str) -> Any:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise errors.bad_request(f"error decoding patch: {go_json.explain(body)}") from None
    if value is not None and not isinstance(value, want):
        why = f"json: cannot unmarshal {found(value)} into Go value of type {go}"
        raise errors.bad_request(f"error decoding patch: {why}")
    return want() if value is None else value


def _json_patch(body: bytes) -> Apply:
    operations = json_patch.decode(_parse(body, list, "[]handlers.jsonPatchOp"))

    def apply(document: dict[str, Any]) -> Any:
        try:
            return json_patch.apply(document, operations)
        except json_patch.JsonPatchError:
            raise errors.StatusError(422, "Invalid", _REJECTED, {}) from None

    return apply


def _merge_patch(body: bytes) -> Apply:
    value = _parse(body, dict, "map[string]interface {}")
    return lambda document: merge_patch.apply(document, value)


def _strategic(scope: ResourceScope, patch: dict[str, Any]) -> Apply:
    schema = patch_schema(scope.expected.struct)

    def apply(document: dict[str, Any]) -> Any:
        try:
            return strategic.apply(document, patch, schema)
        except strategic.StrategicMergeError as error:
            raise _strategic_refusal(error) from None

    return apply


def _strategic_refusal(error: strategic.StrategicMergeError) -> errors.StatusError:
    if error.code == 400:
        return errors.bad_request(str(error))
    if error.code == 422:
        return errors.StatusError(422, "Invalid", str(error), {})
    return errors.generic(str(error))
