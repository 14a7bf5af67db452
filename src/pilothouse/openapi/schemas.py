"""The models of built-in types: catalogue structs as JSON schemas, in the dialect of either OpenAPI version.

The two dialects differ in three ways. Version 3 has defaults, wraps a reference that has siblings in ``allOf``, and
says ``oneOf`` for values of several types; version 2 has none of these. Defaults are those of the Go types: a field
that is neither a pointer nor left out when empty has its type's zero value, a struct always has ``{}``.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pilothouse.apis import documentation, enumerations, types
from pilothouse.machinery.gvk import GroupVersion
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type
from pilothouse.openapi.naming import model_name

Schema = dict[str, Any]
GVK_KEY: Final = "x-kubernetes-group-version-kind"

_SCALARS: Final[dict[str, Schema]] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "uint64": {"type": "integer", "format": "int64"},
    "uint8": {"type": "integer", "format": "byte"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_ZEROS: Final[dict[str, Any]] = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "uint64": 0, "uint8": 0, "float64": 0,
}  # fmt: skip
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
VERSION_INFO: Final = "io.k8s.apimachinery.pkg.version.Info"
_PATCH: Final = f"{_META}.Patch"
_SPECIALS: Final = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "Time": f"{_META}.Time",
    "MicroTime": f"{_META}.MicroTime",
    "Duration": f"{_META}.Duration",
    "FieldsV1": f"{_META}.FieldsV1",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "RawExtension": "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "JSON": f"{_EXTENSIONS}.JSON",
    "SchemaOrBool": f"{_EXTENSIONS}.JSONSchemaPropsOrBool",
    "SchemaOrArray": f"{_EXTENSIONS}.JSONSchemaPropsOrArray",
    "SchemaOrStringArray": f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray",
}
_ALIASES: Final = {
    ("admissionregistration.v1alpha1", "admissionregistration.v1.MatchCondition"): (
        "io.k8s.api.admissionregistration.v1alpha1.MatchCondition"
    )
}
CORE: Final = GroupVersion("", "v1")
_CROSS_REGISTERED: Final = frozenset({"meta.v1.DeleteOptions", "meta.v1.WatchEvent"})


@dataclass(frozen=True, slots=True)
class Dialect:
    """One version of OpenAPI."""

    version: int
    prefix: str


V2: Final = Dialect(2, "#/definitions/")
V3: Final = Dialect(3, "#/components/schemas/")


def definition(model: str, dialect: Dialect, versions: Set[GroupVersion] | None = None) -> Schema | None:
    """The schema of a built-in model, None if there is no such model.

    Types that belong to every group name these ``versions`` of groups, all there are by default.
    """
    fixed = _fixed_definition(model, dialect)
    if fixed is not None:
        return fixed
    name = _type_names(len(types.names())).get(model)
    if name is None:
        return None
    struct = types.struct(_catalogued(name))
    schema: Schema = {}
    if description := documentation.describe_type(name):
        schema["description"] = description
    schema["type"] = "object"
    if required := [field.name for field in struct.fields.values() if field.required]:
        schema["required"] = required
    if struct.fields:
        schema["properties"] = _properties(name, struct, dialect)
    if kinds := _kinds(struct, versions):
        schema[GVK_KEY] = kinds
    if struct.map_type:
        schema["x-kubernetes-map-type"] = struct.map_type
    if struct.unions:
        schema["x-kubernetes-unions"] = struct.unions
    return schema


@cache
def _type_names(known: int) -> dict[str, str]:
    """Catalogue names by model name. Legacy versions add to the types that are ``known``."""
    return {**{model_name(name): name for name in types.names()}, **{model: model[11:] for model in _ALIASES.values()}}


def _catalogued(name: str) -> str:
    return name if types.exists(name) else name.replace("v1alpha1", "v1")


def _properties(name: str, struct: Struct, dialect: Dialect) -> Schema:
    package = name.rpartition(".")[0]
    texts = documentation.descriptions(name)
    enums = enumerations.values_of(name)
    fields = sorted(struct.fields.items())
    return {
        key: _property(field, texts.get(key, ""), _value(field.type, package, dialect, enums.get(key)), dialect)
        for key, field in fields
    }


def _property(field: Field, description: str, value: Schema, dialect: Dialect) -> Schema:
    schema: Schema = {"description": description} if description else {}
    if dialect is V3 and (default := _default(field)) is not None:
        schema["default"] = default
    extensions = _extensions(field)
    if dialect is V3 and "$ref" in value and (schema or extensions):
        schema["allOf"] = [value]
    else:
        schema.update(value)
    schema.update(extensions)
    return schema


def _value(kind: Type, package: str, dialect: Dialect, enum: list[str] | None) -> Schema:
    match kind:
        case Scalar():
            scalar = _SCALARS[kind.kind]
            return scalar if enum is None else {**scalar, "enum": enum}
        case ListOf():
            return {"type": "array", "items": _value(kind.item, package, dialect, enum)}
        case MapOf():
            return {"type": "object", "additionalProperties": _value(kind.value, package, dialect, enum)}
        case Special():
            return {"$ref": dialect.prefix + _SPECIALS[kind.kind]}
        case Struct():
            model = _ALIASES.get((package, kind.name)) or model_name(kind.name)
            return {"$ref": dialect.prefix + model}
    raise TypeError(f"no schema for {kind!r}")


def _default(field: Field) -> Any:
    if field.default is not None:
        return field.default
    if field.pointer:
        return None
    match field.type:
        case Struct():
            return {}
        case Scalar() if not field.omit_empty:
            return _ZEROS.get(field.type.kind)
    return None


def _extensions(field: Field) -> Schema:
    found: Schema = {}
    if field.list_keys:
        found["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.list_type:
        found["x-kubernetes-list-type"] = field.list_type
    if field.map_type:
        found["x-kubernetes-map-type"] = field.map_type
    if field.merge_key:
        found["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.patch:
        found["x-kubernetes-patch-strategy"] = ",".join(sorted(field.patch))
    return found


def _kinds(struct: Struct, versions: Set[GroupVersion] | None) -> list[Schema]:
    package, version, kind = struct.name.split(".")
    if struct.name in _CROSS_REGISTERED:
        named = sorted(_all_versions(len(types.names())) if versions is None else versions)
        return [{"group": gv.group, "kind": kind, "version": gv.version} for gv in named]
    if not struct.is_object:
        return []
    group = "" if package == "meta" else types.group_of(package)
    return [{"group": group, "kind": kind, "version": version}]


@cache
def _all_versions(known: int) -> frozenset[GroupVersion]:
    versions = {tuple(name.split(".")[:2]) for name in types.names()}
    return frozenset(
        GroupVersion(types.group_of(package), version) for package, version in versions if package not in _NO_API
    )


_NO_API: Final = frozenset({"apidiscovery", "audit", "meta"})
_NOT_OF_CLIENTS: Final = frozenset(
    {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}
)


def versions_of_clients() -> frozenset[GroupVersion]:
    """The group versions that client-go knows, which documents of custom resources are made with."""
    return frozenset(gv for gv in _all_versions(len(types.names())) if gv.group not in _NOT_OF_CLIENTS)


@cache
def _fixed_definition(model: str, dialect: Dialect) -> Schema | None:
    if model == VERSION_INFO:
        return _version_info(dialect)
    text, schema = _FIXED.get(model, ("", None))
    if schema is None:
        return None
    if dialect is V2 and "oneOf" in schema:
        schema = {"type": "string", **{key: value for key, value in schema.items() if key != "oneOf"}}
    return {"description": text, **schema}


def _version_info(dialect: Dialect) -> Schema:
    always = (
        "major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform",
    )  # fmt: skip
    sometimes = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")
    properties: Schema = {}
    for name in sorted((*always, *sometimes)):
        text = documentation.describe("version.Info", name)
        properties[name] = {"description": text} if text else {}
        if dialect is V3 and name in always:
            properties[name]["default"] = ""
        properties[name]["type"] = "string"
    text = documentation.describe_type("version.Info")
    head = {"description": text} if text else {}
    return {**head, "type": "object", "required": list(always), "properties": properties}


_FIXED: Final[dict[str, tuple[str, Schema]]] = {
    _PATCH: ("The body of a PATCH request, in the form its content type names.", {"type": "object"}),
    _SPECIALS["Quantity"]: (
        "A number with an optional suffix: decimal (m, k, M, G, T, P, E), binary (Ki, Mi, Gi, Ti, Pi, Ei) or an"
        " exponent (1e3). At most three decimal places; more are rounded up.",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    _SPECIALS["IntOrString"]: (
        "A number, or a string in its place: a port's number or name, a count or a percentage.",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    _SPECIALS["Time"]: ("A time in RFC 3339 form, to the second.", {"type": "string", "format": "date-time"}),
    _SPECIALS["MicroTime"]: ("A time in RFC 3339 form, to the microsecond.", {"type": "string", "format": "date-time"}),
    _SPECIALS["Duration"]: ("A length of time such as 1h30m.", {"type": "string"}),
    _SPECIALS["FieldsV1"]: (
        "A set of fields as a tree: keys are 'f:' and a field's name, 'v:' and a value of a set, 'k:' and the keys of a"
        " list's item, 'i:' and an index, or '.' for the parent itself.",
        {"type": "object"},
    ),
    _SPECIALS["RawExtension"]: ("An object of any kind.", {"type": "object"}),
    _SPECIALS["JSON"]: ("Any JSON value.", {}),
    _SPECIALS["SchemaOrBool"]: ("A JSON schema or a boolean.", {}),
    _SPECIALS["SchemaOrArray"]: ("A JSON schema or a list of them.", {}),
    _SPECIALS["SchemaOrStringArray"]: ("A JSON schema or a list of strings.", {}),
}
