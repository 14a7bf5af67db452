"""What a definition is warned about: formats nobody knows, and sets of what sets cannot hold."""

from __future__ import annotations

from pilothouse.apis.apiextensions.custom_resource_definition import definitions
from pilothouse.apis.apiextensions.schema import formats
from pilothouse.apis.apiextensions.schema.traversal import subschemas
from pilothouse.machinery.go_quote import quote
from pilothouse.machinery.objects import Object


def definition_warnings(crd: Object) -> list[str]:
    """All of them, in order."""
    return format_warnings(crd) + set_warnings(crd)


def format_warnings(crd: Object) -> list[str]:
    """Formats that mean nothing, in the order they stand."""
    return [
        f"unrecognized format {quote(each['format'])}"
        for schema in _schemas(crd)
        for each in subschemas(schema)
        if each.get("format") and not _is_recognized(each.get("type", ""), each["format"])
    ]


def _is_recognized(kind: str, format: str) -> bool:
    if kind in ("", "string"):
        return formats.is_known(format)
    return format in {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())


def set_warnings(crd: Object) -> list[str]:
    """Sets of objects or lists."""
    kinds = {
        each["items"]["type"]
        for schema in _schemas(crd)
        for each in subschemas(schema)
        if each.get("x-kubernetes-list-type") == "set"
        and isinstance(each.get("items"), dict)
        and each["items"].get("type") in ("object", "array")
    }
    return [
        f"x-kubernetes-list-type: set for items of type {quote(kind)} is not supported by server-side apply or CEL "
        "validation rules"
        for kind in sorted(kinds)
    ]


def _schemas(crd: Object) -> list[Object]:
    """One schema for versions that share theirs, as kube-apiserver holds it."""
    found = [(version.get("schema") or {}).get("openAPIV3Schema") for version in definitions.versions(crd)]
    listed = [schema for schema in found if schema is not None]
    return listed[:1] if all(schema == listed[0] for schema in listed) else listed
