"""A patched document as JSON patch and merge patch leave it: how messages show it, and which kind it says to be.

kube-apiserver's library keeps what a patch does not go through as the text it was. So objects on the way of a patch
have their keys sorted, what a patch brings is as it came, and all else is in the order of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from pilothouse.apis import types
from pilothouse.endpoints.expected import TYPE_META, unknown_conversion
from pilothouse.endpoints.request import APIRequest
from pilothouse.endpoints.schemes import find_kind, unknown_internal_kind, unknown_kind
from pilothouse.endpoints.scope import ResourceScope
from pilothouse.machinery import errors
from pilothouse.machinery.field_errors import Path, invalid
from pilothouse.machinery.go_json import escape_html, json_type
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.gvk import GroupKind, GroupVersionKind, parse_group_version
from pilothouse.machinery.schema.decoding import DecodeError, decode
from pilothouse.machinery.schema.own_errors import first_error
from pilothouse.machinery.schema.types import Struct
from pilothouse.machinery.workers import ABANDONED, checkpoint

Places = dict[str, "Places"]
"""Where a patch goes through, as a tree of steps. A hundred thousand places may have as many hundreds in common."""
_DEEPEST: Final = 2_000
"""No document is as deep, but a pointer may name a million steps."""
_EMPTY_OBJECT: Final[Places] = {"": {}}
_FROM_THE_END: Final = re.compile("-[0-9]{1,18}").fullmatch


def operation_places(operations: Sequence[dict[str, Any]]) -> Places:
    """The places that the operations of a JSON patch go through."""
    pointers = [operation.get("path") for operation in operations]
    pointers += [operation.get("from") for operation in operations if operation.get("op") in ("move", "copy")]
    places: Places = {}
    for pointer in pointers:
        here = places
        for part in pointer.split("/", _DEEPEST)[1:] if isinstance(pointer, str) else ():
            here = here.setdefault(part.replace("~1", "/").replace("~0", "~"), {})
    return places


def merge_places(patch: dict[str, Any], document: Any) -> Places:
    """The places that a merge patch goes through. Lists it brings are read, too, unless they replace an object."""
    places: Places = {}
    for key, value in patch.items():
        current = document.get(key) if isinstance(document, dict) else None
        if isinstance(value, dict):
            places[key] = _through(merge_places(value, current))
        elif isinstance(value, list) and not isinstance(current, dict):
            places[key] = _list_places(value)
    return places


def _through(below: Places) -> Places:
    """An object that the patch goes through, whatever is below."""
    return below or _EMPTY_OBJECT


def _list_places(items: list[Any]) -> Places:
    places: Places = {}
    for position, item in enumerate(items):
        if isinstance(item, dict):
            places[str(position)] = _through(merge_places(item, None))
        elif isinstance(item, list):
            places[str(position)] = _list_places(item)
    return places


def sort_along(value: Any, places: Places) -> Any:
    """The document with the keys of all objects sorted that a patch went through."""
    if ABANDONED:
        checkpoint()
    if isinstance(value, list):
        below = _from_the_front(places, len(value))
        return [_sort_below(below.get(str(position)), item) for position, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    return {key: _sort_below(places.get(key), value[key]) for key in sorted(value)}


def _sort_below(places: Places | None, value: Any) -> Any:
    return sort_along(value, places) if places else value


def _from_the_front(places: Places, length: int) -> Places:
    """The same, with positions of a list that are counted from its end among those they mean."""
    counted = [step for step in places if _FROM_THE_END(step)]
    if not counted:
        return places
    places = {**places}
    for step in counted:
        _add(places, str(int(step) + length), places.pop(step))
    return places


def _add(places: Places, step: str, below: Places) -> None:
    """Add what is below a step; what is there already is copied where it changes, and as deep as a pointer is long."""
    waiting = [(places, step, below)]
    while waiting:
        into, step, more = waiting.pop()
        known = into.get(step)
        if known is None:
            into[step] = more
            continue
        known = into[step] = {**known}
        waiting += [(known, next_step, deeper) for next_step, deeper in more.items()]


def show_sorted(document: Any) -> str:
    """A document all of whose keys are sorted, as those of custom resources are."""
    return escape_html(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).decode()


def undecodable(shown: str, why: str) -> errors.StatusError:
    """The 422 for a patch whose result is no object of the kind: it shows the whole result, or the patch."""
    return errors.invalid(GroupKind("", ""), "", [invalid(Path("patch"), shown, why)])


Explain = Callable[[], tuple[Any, str]]
"""The result as kube-apiserver orders it, and what messages quote of it."""


def check_type(scope: ResourceScope, request: APIRequest, validation: str, result: Any, explain: Explain) -> Any:
    """What is to be decoded of a result. A patch may not turn the object into another kind."""
    if not isinstance(result, dict):
        why = f"json: cannot unmarshal {json_type(result)} into Go value of type {TYPE_META}"
        raise undecodable(explain()[1], f"couldn't get version/kind; json parse error: {why}")
    kind, version = result.get("kind"), result.get("apiVersion")
    if (kind, version) == (scope.kind.kind, scope.api_version):
        return result
    for name, given in (("apiVersion", version), ("kind", kind)):
        if given is not None and not isinstance(given, str):
            why = f"json: cannot unmarshal {json_type(given)} into Go struct field .{name} of type string"
            raise undecodable(explain()[1], f"couldn't get version/kind; json parse error: {why}")
    if scope.keeps_type:
        _check_custom(kind or "", version or "", explain)
        return result
    kind = kind or scope.kind.kind
    if not version:
        return _read_unversioned(scope, request, validation, result, kind, explain)
    try:
        gv = parse_group_version(version)
    except ValueError as error:
        raise undecodable(explain()[1], str(error)) from None
    gvk = GroupVersionKind(gv.group, gv.version, kind)
    struct = find_kind(scope.expected.knowing, gvk)
    if struct is None:
        raise undecodable(explain()[1], unknown_kind(scope.expected.knowing, gvk))
    _check_content(struct, result, explain)
    if why := unknown_conversion(gvk, struct, scope.expected):
        raise undecodable(explain()[1], why)
    return result


def _check_content(struct: Struct, result: dict[str, Any], explain: Explain) -> None:
    try:
        decode(struct, result)
    except DecodeError as error:
        ordered, shown = explain()
        raise undecodable(shown, str(first_error(struct, ordered, error))) from None


def _check_custom(kind: str, version: str, explain: Explain) -> None:
    """Custom objects must say what they are; whether that is right is a matter of their validation."""
    if not kind:
        shown = explain()[1]
        raise undecodable(shown, f"Object 'Kind' is missing in '{shown}'")
    try:
        parse_group_version(version)
    except ValueError as error:
        raise undecodable(explain()[1], str(error)) from None


def _read_unversioned(
    scope: ResourceScope, request: APIRequest, validation: str, result: dict[str, Any], kind: str, explain: Explain
) -> dict[str, Any]:
    """Without a version kube-apiserver takes the internal type, which knows no names that JSON has but those of
    metadata.

    These stand at the top of it.
    """
    if kind != scope.kind.kind:
        raise undecodable(explain()[1], unknown_internal_kind(scope.expected.knowing, scope.kind.group, kind))
    known = types.struct("meta.v1.ObjectMeta").fields
    unknown = [
        f"unknown field {quote(name)}"
        for name in sorted(result)
        if name not in ("kind", "apiVersion") and name not in known
    ]
    if validation == "Strict" and unknown:
        raise undecodable(explain()[1], "strict decoding error: " + ", ".join(unknown))
    if validation == "Warn":
        for error in unknown:
            request.warn(error)
    return {"kind": kind, "apiVersion": scope.api_version, "metadata": {k: v for k, v in result.items() if k in known}}
