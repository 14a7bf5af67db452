"""Validation of the schemas in a definition: OpenAPI v3 as far as it is supported, list and map types, rules' form.

Errors of the schema itself come before those of expression rules; rules are looked at only where the schema around them
is right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pilothouse.apis.apiextensions.custom_resource_definition.default_validation import default_errors
from pilothouse.apis.apiextensions.custom_resource_definition.field_paths import FieldPathError, find_field
from pilothouse.apis.apiextensions.custom_resource_definition.internal_form import set_fields, show_items, show_schema
from pilothouse.apis.apiextensions.custom_resource_definition.rules import rule_checks
from pilothouse.apis.apiextensions.custom_resource_definition.structural import structural_errors, unsupported
from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.apis.apiextensions.schema.traversal import is_plain
from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from pilothouse.machinery.schema.emptied import as_given

if TYPE_CHECKING:
    from pilothouse.cel.crd_checks import RuleChecks

Schema = dict[str, Any]
TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_CORRELATABLE_MAPS: Final = (None, "granular", "atomic")
_META_FIELDS: Final = ("metadata", "kind", "apiVersion")
_WITH_STATUS: Final = " if the status subresource is enabled"
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ROOT_FIELDS: Final = (
    "Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength",
    "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties",
    "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
)  # fmt: skip


_NO_DEFAULTS: Final = (
    "(cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use apiextensions.k8s.io/v1)"
)


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """What is demanded of a schema; updates do not demand what was already missing."""

    structural: bool = True
    allow_defaults: bool = True
    valid_types: bool = True
    pruned_defaults: bool = True
    atomic_sets: bool = True
    map_keys: bool = True
    old_rules: frozenset[str] = frozenset()
    suppress_rule_cost: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """What holds where a schema stands."""

    defaults_forbidden: str | None = None
    """Why there may be no default, None where there may."""
    inside_metadata: bool = False
    uncorrelatable: Path | None = None
    """The outermost list or map whose parts have no old values."""


class _Errors:
    """Errors of the schema, and errors of its rules."""

    def __init__(self) -> None:
        self.schema: list[FieldError] = []
        self.rules: list[FieldError] = []


def validate_schema(schema: Schema, path: Path, options: SchemaOptions, *, has_status: bool) -> list[FieldError]:
    """Errors of one version's schema; ``path`` is that of the field that holds ``openAPIV3Schema``."""
    where = path.child("openAPIV3Schema")
    errs: list[FieldError] = []
    if has_status:
        _check_root(schema, where, errs)
    if schema.get("nullable"):
        errs.append(forbidden(path.child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"))
    unreadable, context = "", None
    if options.structural:
        unreadable = unsupported(schema)
        if not unreadable:
            own = structural_errors(schema, where) or default_errors(schema, where, options.pruned_defaults)
            errs += own
            if not own:
                context = rule_checks(schema, options.old_rules, suppress_cost=options.suppress_rule_cost)
    found = _Errors()
    place = _Place() if options.allow_defaults else _Place(defaults_forbidden=_NO_DEFAULTS)
    _validate(schema, where, place, options, found, context, root=True)
    errs += found.schema
    errs += found.rules
    if unreadable and not errs:
        errs.append(invalid(where, "", unreadable))
    if context is not None:
        errs += context.total_cost_errors(where)
    return errs


def _check_root(schema: Schema, path: Path, errs: list[FieldError]) -> None:
    """With a status of its own, only what does not reach into the status may stand at the root."""
    for name in set_fields(schema):
        if name == "Type":
            if schema["type"] != "object":
                why = 'only "object" is allowed as the type at the root of the schema'
                errs.append(invalid(path.child("type"), schema["type"], why + _WITH_STATUS))
                return
        elif name not in _ROOT_FIELDS:
            listed = " ".join(_ROOT_FIELDS)
            why = f"only [{listed}] fields are allowed at the root of the schema"
            errs.append(invalid(path, show_schema(schema), why + _WITH_STATUS))
            return


def _validate(
    schema: Any,
    path: Path,
    place: _Place,
    options: SchemaOptions,
    errors: _Errors,
    context: RuleChecks | None,
    *,
    root: bool = False,
) -> None:
    if not isinstance(schema, dict):
        return
    before = len(errors.schema)
    _check_supported(schema, path, place, options, errors.schema)
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.schema.append(forbidden(path.child("uniqueItems"), why))
    _validate_maps(schema, path, place, options, errors, context, root=root)
    _validate_combinations(schema, path, place, options, errors)
    _validate_items(schema, path, place, options, errors, context)
    for name, child in sorted((schema.get("dependencies") or {}).items()):
        _validate(child, path.child("dependencies").key(name), place, options, errors, None)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = path.child("x-kubernetes-preserve-unknown-fields")
        errors.schema.append(invalid(where, False, "must be true or undefined"))
    _check_map_type(schema, path, errors.schema)
    _check_list_type(schema, path, options, errors.schema)
    if options.map_keys:
        _check_map_keys(schema, path, errors.schema)
    rules = schema.get("x-kubernetes-validations")
    if rules:
        _check_rules(schema, rules, path, errors.schema)
        if len(errors.schema) == before and context is not None:
            errors.rules += context.errors(path, place.uncorrelatable)


def _validate_maps(
    schema: Schema,
    path: Path,
    place: _Place,
    options: SchemaOptions,
    errors: _Errors,
    context: RuleChecks | None,
    *,
    root: bool,
) -> None:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    if additional is not None:
        if properties and additional is not True:
            why = "additionalProperties and properties are mutual exclusive"
            errors.schema.append(forbidden(path.child("additionalProperties"), why))
        inner = place
        if place.inside_metadata:
            inner = replace(place, defaults_forbidden="inside additionalProperties applying to object metadata")
        below = context.additional(additional) if context is not None else None
        _validate(additional, path.child("additionalProperties"), inner, options, errors, below)
    for name in sorted(properties):
        if is_plain(properties[name]):
            continue
        inner = place
        if schema.get("x-kubernetes-map-type") not in _CORRELATABLE_MAPS:
            inner = _uncorrelatable(inner, path)
        if (root or schema.get("x-kubernetes-embedded-resource")) and name in _META_FIELDS:
            inner = replace(inner, inside_metadata=True)
            if root:
                inner = replace(inner, defaults_forbidden=f"in top-level {name}")
        below = context.property(name, properties[name]) if context is not None else None
        _validate(properties[name], path.child("properties").key(name), inner, options, errors, below)


def _uncorrelatable(place: _Place, path: Path) -> _Place:
    return place if place.uncorrelatable is not None else replace(place, uncorrelatable=path)


def _validate_combinations(schema: Schema, path: Path, place: _Place, options: SchemaOptions, errors: _Errors) -> None:
    _validate(schema.get("not"), path.child("not"), place, options, errors, None)
    for key in ("allOf", "oneOf", "anyOf"):
        for position, branch in enumerate(schema.get(key) or ()):
            _validate(branch, path.child(key).index(position), place, options, errors, None)
    for name, child in sorted((schema.get("definitions") or {}).items()):
        _validate(child, path.child("definitions").key(name), place, options, errors, None)


def _validate_items(
    schema: Schema, path: Path, place: _Place, options: SchemaOptions, errors: _Errors, context: RuleChecks | None
) -> None:
    items = schema.get("items")
    if items is None or (isinstance(items, dict) and is_plain(items)):
        return
    inner = place if schema.get("x-kubernetes-list-type") == "map" else _uncorrelatable(place, path)
    where = path.child("items")
    if isinstance(items, list):
        for position, each in enumerate(items):
            _validate(each, where.index(position), inner, options, errors, None)
    else:
        below = context.items(items) if context is not None else None
        _validate(items, where, inner, options, errors, below)


def _check_supported(schema: Schema, path: Path, place: _Place, options: SchemaOptions, errs: list[FieldError]) -> None:
    kind = schema.get("type", "")
    if options.valid_types and kind and kind not in TYPES:
        errs.append(not_supported(path.child("type"), kind, TYPES, plain=True))
    if schema.get("default") is not None and place.defaults_forbidden is not None:
        errs.append(forbidden(path.child("default"), f"must not be set {place.defaults_forbidden}"))
    if schema.get("id"):
        errs.append(forbidden(path.child("id"), "id is not supported"))
    if schema.get("additionalItems") is not None:
        errs.append(forbidden(path.child("additionalItems"), "additionalItems is not supported"))
    present = [key for key in ("patternProperties", "definitions") if schema.get(key)]
    present += (key for key in ("dependencies", "$ref") if as_given(schema, key) is not None)
    errs += (forbidden(path.child(key), f"{key} is not supported") for key in present)
    if kind == "null":
        errs.append(forbidden(path.child("type"), "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list) and schema["items"]:
        errs.append(forbidden(path.child("items"), "items must be a schema object and not an array"))
    if place.inside_metadata and schema.get("x-kubernetes-embedded-resource"):
        where = path.child("x-kubernetes-embedded-resource")
        errs.append(forbidden(where, "must not be used inside of resource meta"))


def _check_declared_type(schema: Schema, path: Path, wanted: str, key: str, errs: list[FieldError]) -> None:
    kind = schema.get("type", "")
    if kind != wanted:
        why = f"must be {wanted} if {key} is specified"
        errs.append(invalid(path.child("type"), kind, why) if kind else required(path.child("type"), why))


def _check_map_type(schema: Schema, path: Path, errs: list[FieldError]) -> None:
    declared = schema.get("x-kubernetes-map-type")
    if declared is None:
        return
    _check_declared_type(schema, path, "object", "x-kubernetes-map-type", errs)
    if declared not in ("atomic", "granular"):
        errs.append(not_supported(path.child("x-kubernetes-map-type"), declared, ("atomic", "granular"), plain=True))


def _check_list_type(schema: Schema, path: Path, options: SchemaOptions, errs: list[FieldError]) -> None:
    declared, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    items = schema.get("items")
    if declared is not None:
        if schema.get("type", "") != "array":
            _check_declared_type(schema, path, "array", "x-kubernetes-list-type", errs)
        elif options.atomic_sets and declared == "set" and isinstance(items, dict):
            _check_set_items(items, path.child("items"), errs)
        if declared not in ("atomic", "set", "map"):
            where = path.child("x-kubernetes-list-type")
            errs.append(not_supported(where, declared, ("atomic", "set", "map"), plain=True))
    if keys and declared != "map":
        where, why = path.child("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"
        errs.append(required(where, why) if declared is None else invalid(where, declared, why))
    if declared == "map":
        _check_map_list(items, as_given(schema, "items"), keys or [], path, errs)


def _check_set_items(items: Schema, path: Path, errs: list[FieldError]) -> None:
    why = "must be atomic as item of a list with x-kubernetes-list-type=set"
    inner = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and inner not in (None, "atomic"):
        errs.append(invalid(path.child("x-kubernetes-list-type"), inner, why))
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        errs.append(invalid(path.child("x-kubernetes-map-type"), inner, why))


def _check_map_list(items: Any, given: Any, keys: list[str], path: Path, errs: list[FieldError]) -> None:
    """``given`` is an empty list or map where the items are an empty list, or neither schema nor list."""
    where = path.child("x-kubernetes-list-map-keys")
    if not keys:
        errs.append(required(where, "must not be empty if x-kubernetes-list-type is map"))
    if given is None:
        errs.append(required(path.child("items"), "must have a schema if x-kubernetes-list-type is map"))
        return
    if not isinstance(items, dict):
        why = "must only have a single schema if x-kubernetes-list-type is map"
        shown = {"Schema": None, "JSONSchemas": given if given == [] else None} if items is None else show_items(items)
        errs.append(invalid(path.child("items"), shown, why))
        return
    kind = items.get("type", "")
    if kind != "object":
        why = "must be object if parent array's x-kubernetes-list-type is map"
        errs.append(invalid(path.child("items").child("type"), kind, why))
        return
    properties = items.get("properties") or {}
    seen: set[str] = set()
    for key in keys:
        if key not in properties:
            errs.append(invalid(where, keys, "entries must all be names of item properties"))
        elif properties[key].get("type") in ("array", "object"):
            why = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errs.append(invalid(path.child("items").child("properties").key(key).child("type"), kind, why))
        if key in seen:
            errs.append(invalid(where, keys, "must not contain duplicate entries"))
        seen.add(key)


def _check_map_keys(schema: Schema, path: Path, errs: list[FieldError]) -> None:
    items, declared = schema.get("items"), schema.get("x-kubernetes-list-type")
    if not isinstance(items, dict) or declared not in ("set", "map"):
        return
    where = path.child("items")
    if items.get("nullable"):
        errs.append(forbidden(where.child("nullable"), f"cannot be nullable when x-kubernetes-list-type is {declared}"))
    if declared != "map":
        return
    needed = frozenset(items.get("required") or ())
    for key in schema.get("x-kubernetes-list-map-keys") or ():
        child = (items.get("properties") or {}).get(key)
        if child is None:
            continue
        own = where.child("properties").key(key)
        if key not in needed and child.get("default") is None:
            why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            errs.append(required(own.child("default"), why))
        if child.get("nullable"):
            why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            errs.append(forbidden(own.child("nullable"), why))


def map_key_errors(schema: Schema) -> bool:
    """Whether keys of a map list may be missing or null."""
    errs: list[FieldError] = []
    _check_map_keys(schema, Path(), errs)
    return bool(errs)


def set_item_errors(schema: Schema) -> bool:
    """Whether items of a set are not atomic."""
    errs: list[FieldError] = []
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") == "set" and isinstance(items, dict):
        _check_set_items(items, Path(), errs)
    return bool(errs)


def _check_rules(schema: Schema, rules: list[Schema], path: Path, errs: list[FieldError]) -> None:
    """The form of expression rules; what they say is another matter."""
    node: Node | None = None
    if any(rule.get("fieldPath") for rule in rules) and not unsupported(schema):
        node = Node(schema)
    for position, rule in enumerate(rules):
        where = path.child("x-kubernetes-validations").index(position)
        text, message = rule.get("rule", "").strip(), rule.get("message", "")
        if not text:
            errs.append(required(where.child("rule"), "rule is not specified"))
        elif message and not message.strip():
            errs.append(invalid(where.child("message"), message, "must be non-empty if specified"))
        elif _has_newline(message.strip()):
            errs.append(invalid(where.child("message"), message, "must not contain line breaks"))
        elif _has_newline(text) and not message.strip():
            why = "message must be specified if rule contains line breaks"
            errs.append(required(where.child("message"), why))
        expression = rule.get("messageExpression", "")
        if expression and not expression.strip():
            why = "messageExpression must be non-empty if specified"
            errs.append(required(where.child("messageExpression"), why))
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            errs.append(not_supported(where.child("reason"), reason, _REASONS))
        _check_field_path(node, rule.get("fieldPath", ""), where.child("fieldPath"), errs)


def _has_newline(text: str) -> bool:
    return "\n" in text or "\r" in text


def _check_field_path(node: Node | None, text: str, where: Path, errs: list[FieldError]) -> None:
    if not text:
        return
    if not text.strip():
        errs.append(invalid(where, text, "must be non-empty if specified"))
    if _has_newline(text):
        errs.append(invalid(where, text, "must not contain line breaks"))
    if node is None:
        return
    try:
        find_field(text, node)
    except FieldPathError:
        errs.append(invalid(where, text, "must be a valid path"))
