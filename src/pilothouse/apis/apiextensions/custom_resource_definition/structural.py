"""Structural schemas: every field is declared outside of combinations, which may only restrict values further.

The errors of one schema come sorted by their text, as in kube-apiserver.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis.apiextensions.schema.traversal import is_plain, subschemas
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, required
from pilothouse.machinery.patterns import PatternError, compile_pattern
from pilothouse.machinery.schema.emptied import as_given

Schema = dict[str, Any]
ROOT: Final = "root"
ITEM: Final = "item"
FIELD: Final = "field"
_KEPT_EMPTY: Final = ("required", "properties", "x-kubernetes-list-map-keys", "x-kubernetes-validations")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNTYPED: Final = {
    ROOT: "must not be empty at the root",
    ITEM: "must not be empty for specified array items",
    FIELD: "must not be empty for specified object fields",
}
_UNSUPPORTED: Final = (
    ("id", "id"), ("$schema", "schema"), ("$ref", "$ref"), ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"), ("additionalItems", "additionalItems"), ("definitions", "definitions"),
)  # fmt: skip
_SUSPECT: Final = frozenset({"x-kubernetes-preserve-unknown-fields", "items", *(key for key, _ in _UNSUPPORTED)})
_FORBIDDEN: Final = (
    ("title", "empty"), ("description", "empty"), ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"), ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"), ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"), ("x-kubernetes-validations", "empty"),
)  # fmt: skip


def unsupported(schema: Any) -> str:
    """Why a schema cannot be read as a structural one at all; empty if it can."""
    return next(filter(None, map(_unsupported, subschemas(schema))), "")


def _unsupported(schema: Schema) -> str:
    if schema.keys().isdisjoint(_SUSPECT):
        return ""
    for key, name in _UNSUPPORTED:
        if schema.get(key) or (key == "additionalItems" and schema.get(key) is not None):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return ""


def structural_errors(schema: Schema, path: Path) -> list[FieldError]:
    """All ways in which a schema is not structural."""
    errs: list[FieldError] = []
    _check(schema, ROOT, path, errs)
    _check_complete(schema, schema, path, path, errs)
    return sorted(errs, key=str)


def _check(schema: Schema, level: str, path: Path, errs: list[FieldError]) -> None:
    kind = schema.get("type", "")
    items, properties, additional = (
        schema.get("items"),
        schema.get("properties") or {},
        schema.get("additionalProperties"),
    )
    if kind == "array" and items is None:
        errs.append(required(path.child("items"), "must be specified"))
    if isinstance(items, dict) and not is_plain(items):
        _check(items, ITEM, path.child("items"), errs)
    for key, child in properties.items():
        if not is_plain(child):
            _check(child, FIELD, path.child("properties").key(key), errs)
    if additional is not None:
        if level == ROOT:
            errs.append(forbidden(path.child("additionalProperties"), "must not be used at the root"))
        if isinstance(additional, dict):
            _check(additional, FIELD, path.child("additionalProperties"), errs)
    _check_extensions(schema, path, errs)
    all_of = schema.get("allOf") or []
    skip_any = _is_int_or_string(schema)
    skip_first = bool(all_of) and _is_int_or_string(all_of[0])
    _check_values(schema, level, path, errs, skip_any=skip_any, skip_first=skip_first)
    _check_type(schema, kind, level, path, errs)
    _check_metadata(schema, properties, level, path, errs)


def _is_int_or_string(schema: Schema) -> bool:
    """Whether the alternatives are exactly an integer and a string, with nothing but a type."""
    branches = schema.get("anyOf")
    return branches == _INT_OR_STRING and not any(
        as_given(branch, key) is not None for branch in branches for key in _KEPT_EMPTY
    )


def _check_extensions(schema: Schema, path: Path, errs: list[FieldError]) -> None:
    if not schema.get("x-kubernetes-int-or-string"):
        return
    keys = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
    why = "must be false if x-kubernetes-int-or-string is true"
    errs += (invalid(path.child(key), True, why) for key in keys if schema.get(key))


def _check_type(schema: Schema, kind: str, level: str, path: Path, errs: list[FieldError]) -> None:
    where = path.child("type")
    open = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    embedded = schema.get("x-kubernetes-embedded-resource")
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        errs.append(invalid(where, kind, why) if kind else required(where, why))
    elif not kind and not open:
        errs.append(required(where, _UNTYPED[level]))
    if embedded and schema.get("additionalProperties") is not None:
        why = "must not be used if x-kubernetes-embedded-resource is set"
        errs.append(forbidden(path.child("additionalProperties"), why))
    if level == ROOT and kind and kind != "object":
        errs.append(invalid(where, kind, "must be object at the root"))


def _check_metadata(schema: Schema, properties: Schema, level: str, path: Path, errs: list[FieldError]) -> None:
    embedded = schema.get("x-kubernetes-embedded-resource")
    checked = level == ROOT or embedded
    for key in ("kind", "apiVersion"):
        if checked and key in properties and properties[key].get("type", "") != "string":
            where = path.child("properties").key(key).child("type")
            errs.append(invalid(where, properties[key].get("type", ""), "must be string"))
    metadata = properties.get("metadata")
    if metadata is not None:
        where = path.child("properties").key("metadata")
        if checked and metadata.get("type", "") != "object":
            errs.append(invalid(where.child("type"), metadata.get("type", ""), "must be object"))
        if level == ROOT and not _only_names(metadata):
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errs.append(forbidden(where, why))
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        errs.append(required(path.child("properties"), why))


def _only_names(metadata: Schema) -> bool:
    rest = {key: value for key, value in metadata.items() if key not in ("type", "default") and _is_set(value)}
    if set(rest.get("properties") or ()) <= {"name", "generateName"}:
        rest.pop("properties", None)
    return not rest and all(as_given(metadata, key) != [] for key in _KEPT_EMPTY)


def _is_set(value: Any) -> bool:
    return bool(value) or value.__class__ in (int, float)


def _check_values(
    schema: Schema, level: str, path: Path, errs: list[FieldError], *, skip_any: bool = False, skip_first: bool = False
) -> None:
    if not skip_any:
        for position, branch in enumerate(schema.get("anyOf") or ()):
            _check_nested(branch, level, path.child("anyOf").index(position), errs)
    for position, branch in enumerate(schema.get("allOf") or ()):
        skip = skip_first and position == 0
        _check_nested(branch, level, path.child("allOf").index(position), errs, skip_any=skip)
    for position, branch in enumerate(schema.get("oneOf") or ()):
        _check_nested(branch, level, path.child("oneOf").index(position), errs)
    if schema.get("not") is not None:
        _check_nested(schema["not"], level, path.child("not"), errs)
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            errs.append(invalid(path.child("pattern"), pattern, why))


def _check_nested(schema: Schema, level: str, path: Path, errs: list[FieldError], *, skip_any: bool = False) -> None:
    _check_values(schema, level, path, errs, skip_any=skip_any)
    if isinstance(schema.get("items"), dict):
        _check_nested(schema["items"], level, path.child("items"), errs)
    properties = schema.get("properties") or {}
    for key, child in properties.items():
        _check_nested(child, FIELD, path.child("properties").key(key), errs)
    if schema.get("type"):
        errs.append(forbidden(path.child("type"), "must be empty to be structural"))
    if schema.get("additionalProperties"):
        errs.append(forbidden(path.child("additionalProperties"), "must be undefined to be structural"))
    if schema.get("default") is not None:
        errs.append(forbidden(path.child("default"), "must be undefined to be structural"))
    for key, wanted in _FORBIDDEN:
        if schema.get(key):
            errs.append(forbidden(path.child(key), f"must be {wanted} to be structural"))
    if "metadata" in properties:
        errs.append(forbidden(path.child("properties").key("metadata"), "must not be specified in a nested context"))


def _check_complete(values: Schema, schema: Schema | None, path: Path, where: Path, errs: list[FieldError]) -> None:
    """Whatever combinations speak of is declared outside of them."""
    if schema is None:
        errs.append(required(path, f"because it is defined in {where}"))
        return
    if values.get("not") is not None:
        _check_nested_complete(values["not"], schema, path, where.child("not"), errs)
    for key in ("allOf", "anyOf", "oneOf"):
        for position, branch in enumerate(values.get(key) or ()):
            _check_nested_complete(branch, schema, path, where.child(key).index(position), errs)


def _check_nested_complete(
    values: Schema, schema: Schema | None, path: Path, where: Path, errs: list[FieldError]
) -> None:
    if schema is None:
        errs.append(required(path, f"because it is defined in {where}"))
        return
    _check_complete(values, schema, path, where, errs)
    if isinstance(values.get("items"), dict):
        items = schema.get("items")
        below = items if isinstance(items, dict) else None
        _check_nested_complete(values["items"], below, path.child("items"), where.child("items"), errs)
    declared = schema.get("properties") or {}
    for key, child in (values.get("properties") or {}).items():
        own, other = path.child("properties").key(key), where.child("properties").key(key)
        if key not in declared:
            errs.append(required(own, f"because it is defined in {other}"))
        else:
            _check_nested_complete(child, declared[key], own, other, errs)
