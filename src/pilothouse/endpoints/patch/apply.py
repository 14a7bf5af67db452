"""Server-side apply: the patch is what its manager wants the object to be."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pilothouse.endpoints.identity import check_identity
from pilothouse.endpoints.input import repeated_lines
from pilothouse.endpoints.offloading import offload
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.endpoints.write_options import WriteOptions
from pilothouse.machinery import errors, go_json, yaml_codec
from pilothouse.machinery.field_manager import FieldManager, named
from pilothouse.machinery.field_manager.tracking import set_entries
from pilothouse.machinery.go_json import json_type
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import DecodeError
from pilothouse.machinery.schema.raw import as_stored, raw_places, written_anew
from pilothouse.machinery.schema.untyped import restore

if TYPE_CHECKING:
    from pilothouse.endpoints.write_request import WriteRequest

_SPACE: Final = b" \t\r\n\v\f"


Applier = Callable[[Object | None, FieldManager], Object]
"""Makes the wanted object from the stored one, with that field manager."""


async def applier_for(
    scope: ResourceScope, request: APIRequest, body: bytes, options: WriteOptions, write: WriteRequest
) -> Applier:
    """The patcher of an apply: it merges, settles ownership, and notes it in managedFields.

    What is applied to nothing becomes the object itself, without a copy; should somebody else be first to create it,
    the patch is read once more.
    """
    first: _Patch | None = await offload(_read, body)
    force = request.options.boolean("force")

    def apply(old: dict[str, Any] | None, fields: FieldManager) -> dict[str, Any]:
        nonlocal first
        patch, repeated, unreadable = _read(body) if first is None else first
        if unreadable is not None:
            raise unreadable
        live = None if old is None else scope.served_object(old)
        merged = fields.apply(live, patch, write.manager, force=force, now=write.ctx.now)
        if places := raw_places(scope.expected.struct):
            request.raw = as_stored if live is not None and _leaves_alone(merged, live) else written_anew(places)
        if live is None:
            first = None
        shown = named(patch, scope.kind)
        if not scope.keeps_type and (brought := (patch.get("metadata") or {}).get("managedFields")):
            _decode(scope, shown, set_entries(merged, brought), owned=False)  # no entries, and so not refused before
        obj = _decode(scope, shown, merged, owned=live is None)
        _report(request, options, repeated)
        check_identity(scope, request, obj)
        # The live object has the defaults of the version it is stored in, perhaps not those of this one.
        return obj if scope.keeps_type and live is not None and _is_same(merged, live) else scope.defaulted(obj)

    return apply


def _is_same(merged: dict[str, Any], live: dict[str, Any]) -> bool:
    """Whether the objects differ at most in who manages what."""
    if merged.keys() != live.keys() or any(merged[key] != value for key, value in live.items() if key != "metadata"):
        return False
    mine, theirs = (
        {key: value for key, value in each["metadata"].items() if key != "managedFields"} for each in (merged, live)
    )
    return mine == theirs


def _leaves_alone(merged: dict[str, Any], live: dict[str, Any]) -> bool:
    """Whether the patch changed nothing but who manages what: then the live object itself goes on."""
    return all(merged.get(key) is value for key, value in live.items() if key != "metadata")


def _decode(scope: ResourceScope, shown: str, merged: Object, *, owned: bool) -> Object:
    """The object. Fields that nobody knows were refused before; where a schema takes anything, nothing is said."""
    expected = scope.expected
    try:
        return expected.decode(merged, owned=owned, applied=True)[0]
    except DecodeError as error:
        err = error
    if not scope.keeps_type:
        try:
            return expected.decode(restore(expected.struct, merged))[0]
        except DecodeError as error:
            why = f"unable to convert unstructured object to {scope.kind}: {error}"
            raise errors.generic(f"failed to convert new object ({shown}) to proper version: {why}") from None
    raise errors.generic(str(err))


def _report(request: APIRequest, options: WriteOptions, repeated: str) -> None:
    """Tell of keys that stand twice, as the client asked to be told; conflicts and wrong types come first."""
    if repeated and options.validation == "Strict":
        raise errors.bad_request(f"error strict decoding patch: error converting YAML to JSON: {repeated}")
    if repeated and options.validation == "Warn":
        for line in repeated_lines(repeated):
            request.warn(line)


class _Patch(NamedTuple):
    """The patch, what YAML says about keys that stand twice, and an error that only shows when it is applied."""

    value: Object
    repeated: str = ""
    unreadable: errors.StatusError | None = None


def _read(body: bytes) -> _Patch:
    """Read the patch; what looks like JSON is not looked at before it is applied."""
    try:
        value, repeated = yaml_codec.load_reporting(body)
        if go_json.may_be_beyond_integers(body):
            value = go_json.without_long_integers(value)
    except ValueError as error:
        if not body.lstrip(_SPACE).startswith(b"{"):
            raise errors.bad_request(f"error encoding patch: {error}") from None
        why = f"error decoding patch: error converting YAML to JSON: {error}"
        return _Patch({}, unreadable=errors.bad_request(why))
    if value is None:
        return _Patch({}, repeated)
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
        err = f"error decoding patch: error unmarshaling JSON: while decoding JSON: {why}"
        return _Patch({}, repeated, errors.bad_request(err))
    return _Patch(value, repeated)
