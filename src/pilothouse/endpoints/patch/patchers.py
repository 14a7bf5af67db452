"""From a patch's bytes to a function that changes a stored object.

A patcher works on the object as the endpoint's version shows it, decodes the result by schema like any body, and gives
a hub object back. It may be called again with a newer object when another write came between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from pilothouse.apis import types
from pilothouse.endpoints.identity import check_identity
from pilothouse.endpoints.input import SCHEME, keep_reset, repeated_fields
from pilothouse.endpoints.patch.patch_schema import patch_schema
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.machinery import errors, go_quote, json_patch, merge_patch
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.gvk import GroupKind
from pilothouse.machinery.merge import strategic
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.ordering import arrange, below
from pilothouse.machinery.schema.raw import compacted, raw_places, written_anew
from pilothouse.machinery.schema.types import Struct, Type

Patcher = Callable[[dict[str, Any] | None], dict[str, Any]]
Apply = Callable[[dict[str, Any]], Any]
Show = Callable[[Any], str]
_REJECTED = "the server rejected our request due to an error in our request"


async def patcher_for(
    scope: ResourceScope, request: APIRequest, kind: str, body: bytes, options: WriteOptions
) -> Patcher:
    """The patcher for a media type that the endpoint takes."""
    reading = await _read(scope, request, kind, body, options)

    def patcher(old: dict[str, Any] | None) -> dict[str, Any]:
        assert old is not None
        return _finish(scope, request, options, reading, reading.apply(scope.served_object(old)))

    return patcher


class Reading(NamedTuple):
    """A patch as its media type has it read."""

    apply: Apply
    show: Show
    """What an error about the result quotes: the result, or the patch itself."""
    repeated: Sequence[str] = ()
    """Faults of fields that stand twice in the patch."""
    strategic: bool = False
    """Strategic merge keeps to the type it patches, and its result is decoded by another decoder with its own words."""


async def _read(scope: ResourceScope, request: APIRequest, kind: str, body: bytes, options: WriteOptions) -> Reading:
    if kind == "application/json-patch+json":
        operations = json_patch.decode(_parse(body, list, "[]handlers.jsonPatchOp"))
        await _report_operations(request, options, body, operations)
        touched = [str(operation.get("path", "")).split("/")[1:] for operation in operations]
        return Reading(_json_patch(operations), _shower(scope, touched))
    if kind == "application/merge-patch+json":
        patch = _parse(body, dict, "map[string]interface {}")
        show = _shower(scope, list(_paths(patch)))
        repeated = [f"duplicate field {go_quote.quote(path)}" for path in await repeated_fields(body, patch)]
        return Reading(lambda document: merge_patch.apply(document, patch), show, repeated)
    patch = _parse(body, dict, "map[string]interface {}", prefix="")
    return Reading(_strategic(scope, patch), lambda result: go_quote.show(patch), strategic=True)


_OPERATION_FIELDS = frozenset({"op", "from", "path", "value"})


async def _report_operations(
    request: APIRequest, options: WriteOptions, body: bytes, operations: list[dict[str, Any]]
) -> None:
    """Operations with fields that mean nothing, or that stand twice, are warned about or refused."""
    if options.validation == "Ignore":
        return
    faults = [
        f"json patch unknown field {go_quote.quote(f'[{position}].{name}')}"
        for position, operation in enumerate(operations)
        for name in operation
        if name not in _OPERATION_FIELDS
    ]
    faults += [f"json patch duplicate field {go_quote.quote(path)}" for path in await repeated_fields(body, operations)]
    if faults and options.validation == "Strict":
        raise errors.bad_request("strict decoding error: " + ", ".join(faults))
    for fault in faults:
        request.warn(fault)


def _finish(
    scope: ResourceScope, request: APIRequest, options: WriteOptions, reading: Reading, result: Any
) -> dict[str, Any]:
    """The patched object, decoded like a body, in the hub version and with defaults."""
    show, repeated = reading.show, reading.repeated
    request.given = result
    if places := raw_places(scope.expected.struct):
        request.raw = written_anew(places) if reading.strategic else compacted(places)
    if isinstance(result, dict) and not scope.keeps_type and not reading.strategic:
        _check_type(scope, request, result, show)
    try:
        obj, unknown = scope.expected.decode(result)
    except DecodeError as error:
        raise undecodable(show(result), _restoring(error) if reading.strategic else str(error)) from None
    if (unknown is not None or repeated) and options.validation != "Ignore":
        faults = [*repeated, *(unknown() if unknown is not None else ())]
        if options.validation == "Strict":
            raise undecodable(show(result), "strict decoding error: " + ", ".join(faults))
        for fault in faults:
            request.warn(fault)
    check_identity(obj, request.info.name, request.info.namespace)
    keep_reset(result, obj, scope.expected.explicit)
    version = obj.get("apiVersion", scope.api_version)
    obj = scope.hub_object(obj)
    if version != scope.api_version:
        scope.strategy.default_older(obj, version)
    scope.strategy.default(obj)
    return obj


def _check_type(scope: ResourceScope, request: APIRequest, result: dict[str, Any], show: Show) -> None:
    """A patch may not turn the object into another kind."""
    kind, version = result.get("kind"), result.get("apiVersion")
    if (kind, version) == (scope.kind.kind, scope.api_version):
        return
    if not kind and not version:
        for name in sorted(result):
            request.warn(f"unknown field {go_quote.quote(name)}")
        check_identity({"metadata": {}}, request.info.name, "")
    if not isinstance(kind, str) or not isinstance(version, str):
        return
    try:
        struct = types.struct_of(version, kind)
    except (KeyError, ValueError):
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "{SCHEME}"'
        raise undecodable(show(result), why) from None
    try:
        decode(struct, result)
    except DecodeError as error:
        raise undecodable(show(result), str(error)) from None


def _restoring(error: DecodeError) -> str:
    """The same fault in the words of the converter that strategic merge decodes its result with."""
    if error.found == "array" and error.go.startswith("map["):
        return "cannot restore map from slice"
    if error.found == "object" and error.go.startswith("[]"):
        return "cannot restore slice from map"
    return str(error)


def _shower(scope: ResourceScope, touched: list[list[str]]) -> Show:
    if scope.keeps_type:
        return lambda result: orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode()
    return lambda result: show_document(scope.expected.struct, result, touched)


def show_document(struct: Struct, result: Any, touched: list[list[str]]) -> str:
    """The patched document as the original prints it: objects that the patch went through have their keys sorted,
    what the patch brought is as it came, all else is in the order of its type."""
    return orjson.dumps(_sort_along(struct, result, [path for path in touched if path])).decode()


def _sort_along(kind: Type | None, value: Any, paths: list[list[str]]) -> Any:
    if isinstance(value, list):
        return [_show_below(kind, str(position), item, paths) for position, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {key: _show_below(kind, key, value[key], paths) for key in sorted(value)}


def _show_below(kind: Type | None, key: str, value: Any, paths: list[list[str]]) -> Any:
    rests = [path[1:] for path in paths if path[0] == key]
    deeper = [rest for rest in rests if rest]
    if deeper:
        return _sort_along(below(kind, key), value, deeper)
    return value if rests else arrange(below(kind, key), value)


def _paths(patch: Any) -> Iterator[list[str]]:
    """Every path that a merge patch goes through."""
    for key, value in patch.items():
        yield [key]
        if isinstance(value, dict):
            yield from ([key, *path] for path in _paths(value))
            yield [key, ""]


def undecodable(shown: str, why: str) -> errors.StatusError:
    """The 422 for a patch whose result is no object of the kind: it shows the whole result, or the patch."""
    return errors.invalid(GroupKind("", ""), "", [invalid(Path("patch"), shown, why)])


def _parse(body: bytes, want: type, go: str, prefix: str = "error decoding patch: ") -> Any:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise errors.bad_request("invalid JSON patch") from None
    if value is None:
        raise errors.bad_request("Invalid JSON Patch")
    if not isinstance(value, want):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type {go}"
        raise errors.bad_request(f"{prefix}{why}")
    return value


def _json_patch(operations: list[dict[str, Any]]) -> Apply:
    def apply(document: dict[str, Any]) -> Any:
        try:
            return json_patch.apply(document, operations)
        except json_patch.JsonPatchError:
            raise errors.StatusError(422, "Invalid", _REJECTED, {}) from None

    return apply


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
