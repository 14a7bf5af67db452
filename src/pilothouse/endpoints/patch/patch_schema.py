"""The catalogue's types as strategic merge sees them."""

from __future__ import annotations

from pilothouse.machinery.merge.strategic import UNTYPED, FieldPatchInfo, PatchSchema
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type


class StructPatchSchema:
    """A struct and the merge strategies of its fields, read once."""

    kind = "struct"

    def __init__(self, struct: Struct) -> None:
        self._struct = struct
        self._fields: dict[str, FieldPatchInfo] = {}

    @property
    def name(self) -> str:
        return self._struct.short_name

    def field(self, name: str) -> FieldPatchInfo | None:
        """The field with this JSON name."""
        info = self._fields.get(name)
        if info is None:
            field = self._struct.fields.get(name)
            if field is None:
                return None
            info = self._fields[name] = _info_of(field)
        return info


class _OpaqueSchema:
    """A scalar, or a struct that reads its JSON itself: names for messages and no fields."""

    def __init__(self, kind: str, name: str = "") -> None:
        self.kind = kind
        self.name = name

    def field(self, name: str) -> FieldPatchInfo | None:
        return None


def patch_schema(struct: Struct) -> PatchSchema:
    """The schema for patching objects of a type."""
    schema: PatchSchema | None = struct.derived.get("patch")
    if schema is None:
        schema = struct.derived["patch"] = StructPatchSchema(struct)
    return schema


def _info_of(field: Field) -> FieldPatchInfo:
    is_list = isinstance(field.type, ListOf)
    item = field.type.item if isinstance(field.type, ListOf) else field.type
    return FieldPatchInfo(field.patch, field.merge_key, _schema_of(item), is_list)


def _schema_of(kind: Type) -> PatchSchema:
    if isinstance(kind, Struct):
        return patch_schema(kind)
    if isinstance(kind, Scalar) and not isinstance(kind, MapOf):
        return _OpaqueSchema(kind.kind)
    if isinstance(kind, Special):
        return _OpaqueSchema("struct", kind.kind)
    return UNTYPED
