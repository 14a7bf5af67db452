"""From a patch's bytes to a function that changes a stored object.

A patcher works on the object as the endpoint's version shows it, decodes the result by schema like any body, and gives
a hub object back. It may be called again with a newer object when another write came between. Errors of the patch
itself show when it is applied: an object that does not exist is missed first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from pilothouse.endpoints.expected import StrictErrors, strict_errors
from pilothouse.endpoints.identity import check_identity
from pilothouse.endpoints.input import keep_reset, repeated_fields
from pilothouse.endpoints.offloading import offload
from pilothouse.endpoints.patch.documents import (
    Places,
    check_type,
    merge_places,
    operation_places,
    show_sorted,
    sort_along,
    undecodable,
)
from pilothouse.endpoints.patch.patch_schema import patch_schema
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.machinery import errors, go_json, go_quote, json_patch, large_json, merge_patch
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.merge import strategic
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError
from pilothouse.machinery.schema.ordering import arrange
from pilothouse.machinery.schema.raw import Place, Writing, compacted, raw_places, written_anew
from pilothouse.machinery.schema.raw_merge import merged
from pilothouse.machinery.schema.untyped import restore

Patcher = Callable[[Object | None], Object]
"""Makes the wanted object from the stored one."""
_REJECTED: Final = "the server rejected our request due to an error in our request"
_OPERATION_FIELDS: Final = ("op", "path", "from", "value")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_JSON_PATCH: Final = "application/json-patch+json"


async def patcher_for(
    scope: ResourceScope, request: APIRequest, kind: str, body: bytes, options: WriteOptions
) -> Patcher:
    """The patcher for a media type that the endpoint takes."""
    reading: Reading | errors.StatusError
    try:
        body, value = await _parse(body)
        if scope.keeps_type and go_json.may_be_beyond_integers(body):
            value = go_json.without_long_integers(value)
        try:
            reading = await _read(scope, kind, body, value, options.validation)
        except errors.StatusError as error:
            reading = error
    except go_json.BeyondFloats as error:
        reading = _beyond_floats(kind, str(error))

    def patcher(old: Object | None) -> Object:
        assert old is not None
        if isinstance(reading, errors.StatusError):
            raise reading
        return _Application(scope, request, options.validation, reading, scope.served_object(old)).run()

    return patcher


async def _parse(body: bytes) -> tuple[bytes, Any]:
    """The patch as JSON, and the text it was read from. Raises ``BeyondFloats``."""
    try:
        return body, large_json.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return await offload(go_json.mend, body), await offload(go_json.read_mended, body)
    except go_json.JSONSyntaxError:
        raise errors.bad_request("invalid JSON patch") from None


def _beyond_floats(kind: str, why: str) -> errors.StatusError:
    """The refusal of a number that cannot be kept, which shows when the patch is applied."""
    if kind == _JSON_PATCH:
        why = why.replace("Go value", "Go struct field jsonPatchOp.value")
    return errors.bad_request(why if kind == _STRATEGIC else f"error decoding patch: {why}")


class Reading(NamedTuple):
    """A patch as its media type has it read."""

    apply: Callable[[Object], Any]
    explain: Callable[[Object], tuple[Any, str]]
    """For messages: the result with its keys in kube-apiserver's order, and what they quote of result or patch."""
    repeated: Sequence[str] = ()
    """Errors of fields that stand twice in the patch."""
    strategic: bool = False
    """Strategic merge keeps to the type it patches, and its result is read by other rules."""
    write_raw: Callable[[tuple[Place, ...]], Writing] = compacted
    """How raw values at these places are written in the result."""


async def _read(scope: ResourceScope, kind: str, body: bytes, value: Any, validation: str) -> Reading:
    if kind == _STRATEGIC:
        return await _read_strategic(scope, body, value)
    if kind == _JSON_PATCH:
        if validation != "Ignore":
            value = _expect(value, list, "[]handlers.jsonPatchOp")
            _check_operations(value)
        operations = json_patch.decode(value)
        apply = _json_patch(operations)
        explain = _explainer(scope, apply, lambda document: operation_places(operations))
        return Reading(apply, explain, await _odd_fields(body, operations))
    patch = value if value is None or validation == "Ignore" else _expect(value, dict, "map[string]interface {}")
    repeated = [f"duplicate field {go_quote.quote(path)}" for path in await repeated_fields(body, patch)]

    def merge(document: Object) -> Any:
        try:
            return merge_patch.apply(document, patch)
        except merge_patch.MergePatchError as error:
            raise errors.bad_request(str(error)) from None

    def places(document: Object) -> Places:
        return merge_places(patch, document) if isinstance(patch, dict) else {}

    def merge_texts(document: Object) -> Any:
        try:
            return merge_patch.apply(document, go_json.with_texts(body))
        except (ValueError, RecursionError):
            return merge(document)

    explain = _explainer(scope, merge, places, merge_texts)
    return Reading(merge, explain, repeated, write_raw=lambda places: merged(places, body))


def _explainer(
    scope: ResourceScope,
    apply: Callable[[Object], Any],
    places: Callable[[Object], Places],
    apply_texts: Callable[[Object], Any] | None = None,
) -> Callable[[Object], tuple[Any, str]]:
    """``apply_texts`` gives the same result with values of the patch as they were written: so they are shown."""

    def explain(document: Object) -> tuple[Any, str]:
        if scope.keeps_type:
            result = apply(document)
            return result, show_sorted(result if apply_texts is None else apply_texts(document))
        arranged, changed = arrange(scope.expected.struct, document), places(document)
        result = sort_along(apply(arranged), changed)
        shown = result if apply_texts is None else sort_along(apply_texts(arranged), changed)
        return result, go_json.escape_html(orjson.dumps(shown)).decode()

    return explain


def _check_operations(value: list[Any]) -> None:
    """Operations must be objects, and their names and pointers strings."""
    for operation in value:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            why = f"json: cannot unmarshal {json_type(operation)} into Go value of type handlers.jsonPatchOp"
            raise errors.bad_request(f"error decoding patch: {why}")
        for name, given in operation.items():
            if name in _OPERATION_FIELDS[:3] and given is not None and not isinstance(given, str):
                why = f"cannot unmarshal {json_type(given)} into Go struct field jsonPatchOp.{name} of type string"
                raise errors.bad_request(f"error decoding patch: json: {why}")


async def _odd_fields(body: bytes, operations: list[Object]) -> list[str]:
    """Fields of operations that mean nothing, or that stand twice."""
    errs = [
        f"json patch unknown field {go_quote.quote(f'[{position}].{name}')}"
        for position, operation in enumerate(operations)
        for name in operation
        if name not in _OPERATION_FIELDS
    ]
    return errs + [
        f"json patch duplicate field {go_quote.quote(path)}" for path in await repeated_fields(body, operations)
    ]


class _Application(NamedTuple):
    """One attempt at patching one state of the object."""

    scope: ResourceScope
    request: APIRequest
    validation: str
    reading: Reading
    served: Object

    def run(self) -> Object:
        """The patched object, decoded like a body, in the hub version and with defaults."""
        scope, request, reading = self.scope, self.request, self.reading
        result = reading.apply(self.served)
        if places := raw_places(scope.expected.struct):
            request.raw = reading.write_raw(places)
        if not reading.strategic:
            result = check_type(scope, request, self.validation, result, lambda: reading.explain(self.served))
        obj, unknown = self._decode(result)
        self._report(unknown)
        check_identity(scope, request, obj)
        version = obj.get("apiVersion")
        keep_reset(obj)
        if scope.keeps_type and not version:
            raise errors.internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")
        if version and version != scope.api_version:
            scope.strategy.default_older(obj, version)
        return scope.defaulted(obj)

    def _decode(self, result: Any) -> tuple[Object, StrictErrors | None]:
        expected = self.scope.expected
        try:
            return expected.decode(result, stored=self.served)
        except DecodeError as error:
            first = error
        ordered, shown = self.reading.explain(self.served)
        try:
            if self.reading.strategic:
                return expected.decode(restore(expected.struct, result))
            expected.decode(ordered)
        except DecodeError as error:
            first = error
        raise undecodable(shown, str(first))

    def _report(self, unknown: StrictErrors | None) -> None:
        """Tell of fields that stand twice or that nobody knows, as the client asked to be told."""
        reading = self.reading
        if self.validation == "Ignore" or (unknown is None and not reading.repeated):
            return
        ordered, shown = reading.explain(self.served)
        errs: list[str] = []
        if unknown is not None:
            keeps_type, quoted = self.scope.keeps_type, not reading.strategic
            errs = unknown() if keeps_type else strict_errors(self.scope.expected, ordered, quoted=quoted)
        errs = [*reading.repeated, *(sorted(errs) if reading.strategic else errs)]
        if self.validation == "Strict":
            raise undecodable(shown, "strict decoding error: " + ", ".join(errs))
        for error in errs:
            self.request.warn(error)


def _expect(value: Any, want: type, go: str, prefix: str = "error decoding patch: ") -> Any:
    """The value if it has the right form; null is an empty one."""
    if value is None:
        return want()
    if not isinstance(value, want):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type {go}"
        raise errors.bad_request(f"{prefix}{why}")
    return value


def _json_patch(operations: list[Object]) -> Callable[[Object], Any]:
    def apply(document: Object) -> Any:
        try:
            return json_patch.apply(document, operations)
        except json_patch.JsonPatchError:
            raise errors.StatusError(422, "Invalid", _REJECTED, {}) from None

    return apply


async def _read_strategic(scope: ResourceScope, body: bytes, value: Any) -> Reading:
    patch = _expect(value, dict, "map[string]interface {}", prefix="")
    repeated = [f"duplicate field {go_quote.quote(path)}" for path in await repeated_fields(body, patch)]
    schema = patch_schema(scope.expected.struct)

    def apply_anew(document: Object) -> tuple[Any, Object]:
        """The result, and what is left of the patch: merging uses it up."""
        patch = large_json.loads(body) or {}
        if go_json.may_be_beyond_integers(body):
            _limit_integers(patch)
        try:
            return strategic.apply(document, patch, schema), patch
        except strategic.StrategicMergeError as error:
            raise _strategic_refusal(error) from None

    def explain(document: Object) -> tuple[Any, str]:
        result, patch = apply_anew(document)
        return result, go_quote.show(patch)

    return Reading(lambda document: apply_anew(document)[0], explain, repeated, strategic=True, write_raw=written_anew)


def _limit_integers(patch: Any) -> None:
    """Integers that Go's int64 cannot hold are floats to kube-apiserver."""
    pending = [patch]
    while pending:
        container = pending.pop()
        for place, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if isinstance(item, (dict, list)):
                pending.append(item)
            elif item.__class__ is int and not -(1 << 63) <= item < 1 << 63:
                container[place] = float(item)


def _strategic_refusal(error: strategic.StrategicMergeError) -> errors.StatusError:
    if error.code == 400:
        return errors.bad_request(str(error))
    if error.code == 422:
        return errors.StatusError(422, "Invalid", str(error), {})
    return errors.generic(str(error))
