"""Validation of what a definition says about tables, selectors and subresources: paths into its objects."""

from __future__ import annotations

from typing import Final

from pilothouse.apis.apiextensions.custom_resource_definition.field_paths import FieldPathError, find_field
from pilothouse.apis.apiextensions.custom_resource_definition.structural import unsupported
from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.machinery.field_errors import FieldError, Path, duplicate, invalid, required, too_many
from pilothouse.machinery.objects import Object

SELECTABLE_LIMIT: Final = 8
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


def validate_column(column: Object, path: Path, errs: list[FieldError]) -> None:
    """Errors of a printer column."""
    if not column.get("name"):
        errs.append(required(path.child("name")))
    listed = f"must be one of {','.join(_COLUMN_TYPES)}"
    kind = column.get("type", "")
    if not kind:
        errs.append(required(path.child("type"), listed))
    elif kind not in _COLUMN_TYPES:
        errs.append(invalid(path.child("type"), kind, listed))
    format = column.get("format", "")
    if format and format not in _COLUMN_FORMATS:
        errs.append(invalid(path.child("format"), format, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    text = column.get("jsonPath", "")
    if not text:
        errs.append(required(path.child("JSONPath")))
    else:
        _check_simple_path(text, path.child("JSONPath"), errs)


def _check_simple_path(text: str, path: Path, errs: list[FieldError]) -> bool:
    if not text.startswith("."):
        errs.append(invalid(path, text, "must be a simple json path starting with ."))
        return False
    return True


def validate_subresources(declared: Object | None, path: Path, errs: list[FieldError]) -> None:
    """Errors of the scale subresource's paths."""
    scale = (declared or {}).get("scale")
    if scale is None:
        return
    for key, start in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text, where = scale.get(key, ""), path.child(f"scale.{key}")
        if not text:
            errs.append(required(where))
        elif _check_simple_path(text, where, errs) and not text.startswith(start):
            errs.append(invalid(where, text, f"should be a json path under {start[:-1]}"))
    text, where = scale.get("labelSelectorPath"), path.child("scale.labelSelectorPath")
    if text and _check_simple_path(text, where, errs) and not text.startswith((".spec.", ".status.")):
        errs.append(invalid(where, text, "should be a json path under either .spec or .status"))


def validate_selectable(
    fields: list[Object], schema: Object, path: Path, errs: list[FieldError], *, allow_many: bool
) -> None:
    """Errors of fields that selectors may use."""
    why = unsupported(schema)
    if why:
        errs.append(invalid(Path(str(path).rpartition(".")[0]).child("schema.openAPIV3Schema"), "", why))
    node = None if why else Node(schema)
    seen: set[str] = set()
    for position, field in enumerate(fields):
        where, text = path.index(position).child("jsonPath"), field.get("jsonPath", "")
        if not text:
            errs.append(required(where))
            continue
        try:
            found, leaf = find_field(text, node, brackets=False)
        except FieldPathError as error:
            errs.append(invalid(where, text, f"is an invalid path: {error}"))
            continue
        name = str(found)
        if name.partition(".")[0] == "metadata":
            errs.append(invalid(where, text, "must not point to fields in metadata"))
        if leaf is None or leaf.type not in ("string", "boolean", "integer"):
            reason = (
                "must point to a field of type string, boolean or integer. Enum string fields and strings with formats "
                "are allowed."
            )
            errs.append(invalid(where, text, reason))
        if name in seen:
            errs.append(duplicate(where, text))
        seen.add(name)
    if len(seen) > SELECTABLE_LIMIT and not allow_many:
        errs.append(too_many(path, len(seen), SELECTABLE_LIMIT))
