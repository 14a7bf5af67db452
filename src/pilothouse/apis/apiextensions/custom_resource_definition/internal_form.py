"""A definition the way kube-apiserver holds it inside, which shows in paths and values of its error messages.

What all versions have in common moves to the top: with one version, or several alike, errors speak of
``spec.validation`` and ``spec.additionalPrinterColumns`` instead of ``spec.versions[0]``. Refused values are printed
with Go's field names and all empty fields.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.emptied import as_given, unset

_SHARED: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}


class InternalSpec:
    """The spec with what its versions share at the top."""

    def __init__(self, spec: Object) -> None:
        self.spec = spec
        self.versions: list[Object] = [version.copy() for version in spec.get("versions") or ()]
        self.shared: Object = {}
        if not self.versions:
            return
        for key, name in _SHARED.items():
            first = self.versions[0].get(key)
            if all(version.get(key) == first for version in self.versions):
                if first is not None:
                    self.shared[name] = first
                for version in self.versions:
                    unset(version, key)

    @property
    def shown_versions(self) -> list[Object] | None:
        """All versions as an error shows them."""
        return None if self.spec.get("versions") is None else [show_version(version) for version in self.versions]

    def has_status(self, version: Object) -> bool:
        """Whether a version's status has a subresource of its own."""
        subresources = version.get("subresources") or self.shared.get("subresources") or {}
        return subresources.get("status") is not None


def show_version(version: Object) -> Object:
    """A version with Go's names."""
    schema = version.get("schema")
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None if schema is None else {"OpenAPIV3Schema": show_schema(schema.get("openAPIV3Schema"))},
        "Subresources": _show_subresources(version.get("subresources")),
        "AdditionalPrinterColumns": _show_columns(as_given(version, "additionalPrinterColumns")),
        "SelectableFields": _show_selectable(as_given(version, "selectableFields")),
    }


def _show_subresources(declared: Object | None) -> Object | None:
    if declared is None:
        return None
    scale = declared.get("scale")
    shown = None
    if scale is not None:
        shown = {
            "SpecReplicasPath": scale.get("specReplicasPath", ""),
            "StatusReplicasPath": scale.get("statusReplicasPath", ""),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        }
    return {"Status": {} if declared.get("status") is not None else None, "Scale": shown}


def _show_columns(columns: list[Object] | None) -> list[Object] | None:
    if columns is None:
        return None
    names = (("Name", "name"), ("Type", "type"), ("Format", "format"), ("Description", "description"))
    return [
        {
            **{go: column.get(key, "") for go, key in names},
            "Priority": column.get("priority", 0),
            "JSONPath": column.get("jsonPath", ""),
        }
        for column in columns
    ]


def _show_selectable(fields: list[Object] | None) -> list[Object] | None:
    return [{"JSONPath": field.get("jsonPath", "")} for field in fields] if fields is not None else None


def show_rule(rule: Object) -> Object:
    """An expression rule with Go's names."""
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


_FIELDS: Final = (
    ("ID", "id", ""), ("Schema", "$schema", ""), ("Ref", "$ref", None), ("Description", "description", ""),
    ("Type", "type", ""), ("Nullable", "nullable", False), ("Format", "format", ""), ("Title", "title", ""),
    ("Default", "default", None), ("Maximum", "maximum", None), ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None), ("ExclusiveMinimum", "exclusiveMinimum", False), ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None), ("Pattern", "pattern", ""), ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None), ("UniqueItems", "uniqueItems", False), ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None), ("MaxProperties", "maxProperties", None), ("MinProperties", "minProperties", None),
    ("Required", "required", None), ("Items", "items", None), ("AllOf", "allOf", None), ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None), ("Not", "not", None), ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None), ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None), ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None), ("ExternalDocs", "externalDocs", None), ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False), ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None), ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)  # fmt: skip


def set_fields(schema: Object) -> list[str]:
    """The Go names of all fields a schema sets, in the order of kube-apiserver's struct."""
    return [
        go
        for go, key, empty in _FIELDS
        if as_given(schema, key) not in (None, "", False, empty) or _is_set(schema, key)
    ]


def _is_set(schema: Object, key: str) -> bool:
    """Numbers and pointers are set even when they are zero."""
    value = schema.get(key)
    return value is not None and value.__class__ in (int, float) and value.__class__ is not bool


def show_schema(schema: Any) -> Any:
    """A schema with Go's names."""
    if not isinstance(schema, dict):
        return None
    given = ((go, as_given(schema, key), empty) for go, key, empty in _FIELDS)
    return {go: _show_field(go, empty if value is None else value) for go, value, empty in given}


def _show_field(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in ("AllOf", "OneOf", "AnyOf"):
        return [show_schema(each) for each in value]
    if name in ("Properties", "PatternProperties", "Definitions"):
        return {key: show_schema(value[key]) for key in sorted(value)}
    if name == "Not":
        return show_schema(value)
    if name == "ExternalDocs":
        return {"Description": value.get("description", ""), "URL": value.get("url", "")}
    if name in ("AdditionalProperties", "AdditionalItems"):
        return {"Allows": value is not False, "Schema": show_schema(value)}
    if name == "Items":
        return show_items(value)
    if name == "XValidations":
        return [show_rule(rule) for rule in value]
    return value


def show_items(items: Any) -> Object:
    """The schema of a list's items, or a list of them."""
    several = [show_schema(each) for each in items] if isinstance(items, list) else None
    return {"Schema": show_schema(items), "JSONSchemas": several}
