"""Validation of defaults: each must be valid where it stands, and have no fields that pruning would drop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from pilothouse.apis.apiextensions.custom_resource_definition.rules import default_rule_errors
from pilothouse.apis.apiextensions.schema import embedded
from pilothouse.apis.apiextensions.schema.checks import WORK, TooMuchWork, compile_check
from pilothouse.apis.apiextensions.schema.embedded import coerce_metadata
from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node
from pilothouse.apis.apiextensions.schema.pruning import prune, prune_value
from pilothouse.apis.apiextensions.schema.reporting import field_errors
from pilothouse.apis.apiextensions.schema.traversal import subschemas
from pilothouse.apis.apiextensions.schema.values import explain
from pilothouse.machinery.field_errors import FieldError, Path, aggregate, invalid
from pilothouse.machinery.schema.decoding import DecodeError

Schema = dict[str, Any]
Surround = Callable[[Any], Any]
"""Builds the object around a value inside its metadata."""
_META_FIELDS = ("metadata", "apiVersion", "kind")


def default_errors(schema: Schema, path: Path, pruned: bool) -> list[FieldError]:
    """Errors of all defaults in a schema; ``pruned`` demands that they have no unknown fields."""
    errs: list[FieldError] = []
    if any("default" in each for each in subschemas(schema)):
        whole = Node({**schema, "x-kubernetes-embedded-resource": True})  # an object of its own, so its default is one
        _check(whole, path, _typed, pruned, errs, inside=False, root=True)
    return errs


def _typed(value: Any) -> Any:
    return {"kind": "Validation", "apiVersion": "validation/v1", **value}


def _check(
    node: Node, path: Path, surround: Surround, pruned: bool, errs: list[FieldError], *, inside: bool, root: bool
) -> None:
    if node.embedded:
        inside, surround = False, _typed
    if node.default is not NO_DEFAULT:
        if inside:
            _check_metadata_default(node, path, surround, errs)
        else:
            _check_default(node, path, pruned, errs, root=root)
    if not node.has_defaults:
        return
    if node.items is not None:
        _check(
            node.items, path.child("items"), lambda value: surround([value]), pruned, errs, inside=inside, root=False
        )
    for key in sorted(node.properties):
        below = inside or ((root or node.embedded) and key in _META_FIELDS)
        outer = _around(surround, key)
        _check(node.properties[key], path.child("properties").key(key), outer, pruned, errs, inside=below, root=False)


def _around(surround: Surround, key: str) -> Surround:
    return lambda value: surround({key: value})


def _check_default(node: Node, path: Path, pruned: bool, errs: list[FieldError], *, root: bool) -> None:
    where = path.child("default")
    whole = root or node.embedded
    is_pruned = not pruned or _is_pruned(node, whole=whole)
    refused = ""
    try:
        embedded.coerce(node.default, node, where, [])  # itself: the definition keeps, and errors show, what is left
    except DecodeError as error:
        refused = str(error)
    if not is_pruned:
        shown = orjson.loads(orjson.dumps(node.default, option=orjson.OPT_SORT_KEYS))
        errs.append(invalid(where, shown, "must not have unknown fields"))
    if refused:
        errs.append(_stated(where, node.default, refused))
        return
    found: list[FieldError] = []
    embedded.check(node.default, node, where, found)
    errs += found or _value_errors(node, where, resource=whole)


def _is_pruned(node: Node, *, whole: bool) -> bool:
    """Whether pruning would leave a default as it is."""
    copy = orjson.loads(orjson.dumps(node.default))
    dropped = prune(copy, node) if whole and isinstance(copy, dict) else prune_value(copy, node)
    return not dropped and bool(copy == node.default)


def _stated(where: Path, value: Any, message: str) -> FieldError:
    """A decoding error already names its own place; take it over as it is."""
    name, _, rest = message.partition(": Invalid value: ")
    why = rest.rpartition(": ")[2] if rest else message
    return invalid(Path(name) if rest else where, value, why)


def _check_metadata_default(node: Node, path: Path, surround: Surround, errs: list[FieldError]) -> None:
    where = path.child("default")
    obj = surround(node.default)
    try:
        metadata, _ = coerce_metadata(obj.get("metadata"))
    except DecodeError as error:
        value = obj.get("metadata")
        why = str(invalid(Path("metadata"), value, str(error)))
        errs.append(invalid(where, node.default, f"must result in valid metadata: {why}"))
        return
    found: list[FieldError] = []
    embedded.check_object({**obj, "metadata": metadata}, None, found)
    if found:
        why = aggregate(map(str, found))
        errs.append(invalid(where, node.default, f"must result in valid metadata: {why}"))
        return
    errs += _value_errors(node, where, resource=False)


def _without_int_or_string(schema: Any) -> Any:
    """The schema that defaults are held to: in kube-apiserver it has no types where numbers and texts are allowed."""
    if not any("x-kubernetes-int-or-string" in each for each in subschemas(schema)):
        return schema
    copy = orjson.loads(orjson.dumps(schema))
    for each in subschemas(copy):
        each.pop("x-kubernetes-int-or-string", None)
    return copy


def _value_errors(node: Node, where: Path, *, resource: bool) -> list[FieldError]:
    WORK.renew()
    try:
        source = _without_int_or_string(node.source)
        if not compile_check(source)(node.default):
            return field_errors(where, explain(source, node.default))
    except TooMuchWork:
        return [invalid(where, "", "takes too long to check against all alternatives of the schema")]
    return default_rule_errors(node, node.default, where, resource=resource)
