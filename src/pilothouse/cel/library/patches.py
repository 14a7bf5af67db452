"""What mutations are written with: `Object{...}` and its parts, `JSONPatch{...}`, `jsonpatch.escapeKey`."""

from __future__ import annotations

import base64
from typing import Any

from pilothouse.cel.conversions import format_duration, format_timestamp
from pilothouse.cel.declarations import Function, Library, Overload, PlainStruct, StructType
from pilothouse.cel.types import DYN, STRING, UNSPECIFIED, struct
from pilothouse.cel.values import Duration, Message, Optional, Timestamp, UInt, fail, from_map_key, type_name

JSON_PATCH_TYPE = struct("JSONPatch")
OBJECT_TYPE = struct("Object")
_JSON_PATCH = PlainStruct(
    JSON_PATCH_TYPE, {"op": STRING, "from": STRING, "path": STRING, "value": DYN}, unknown=UNSPECIFIED
)


class MutationTypes:
    """Finds `JSONPatch`, `Object` and `Object.<field>...`; fields of objects are dynamic."""

    __slots__ = ()

    def find(self, name: str) -> StructType | None:
        if name == "JSONPatch":
            return _JSON_PATCH
        if name == "Object" or name.startswith("Object."):
            return PlainStruct(struct(name), {}, unknown=DYN)
        return None


def _escape_key(text: str) -> str:
    return text.replace("~", "~0").replace("/", "~1")


PATCH_LIBRARY = Library(
    (
        Function(
            "jsonpatch.escapeKey", [Overload("string_jsonpatch_escapeKey_string", "(string) -> string", _escape_key)]
        ),
    )
)


def misnamed(value: Any, path: tuple[str, ...]) -> list[str]:
    """Tell where types of nested objects do not follow the path of fields, starting from `("Object",)`."""
    errs: list[str] = []
    if isinstance(value, Message):
        wanted = ".".join(path)
        if value.cel_type.name != wanted:
            errs.append(
                f'unexpected type name "{value.cel_type.name}", expected "{wanted}", which matches field name path'
                " from root Object type"
            )
        for name, item in value.items():
            errs += misnamed(item, (*path, name))
    elif isinstance(value, list):
        for item in value:
            errs += misnamed(item, path)
    elif isinstance(value, dict):
        for name, item in value.items():
            errs += misnamed(item, (*path, str(name)))
    return errs


def to_json(value: Any, *, keeps_bytes: bool = False) -> Any:
    """Turn a value into plain JSON, as patches need it; apply configurations keep bytes, which fit no field."""
    if isinstance(value, dict):
        return {str(from_map_key(key)): to_json(item, keeps_bytes=keeps_bytes) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(item, keeps_bytes=keeps_bytes) for item in value]
    if value is None or isinstance(value, str | bool | float):
        return value
    if isinstance(value, UInt | int):
        return int(value)
    if isinstance(value, bytes):
        return value if keeps_bytes else base64.b64encode(value).decode()
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Optional):
        return to_json(value.value, keeps_bytes=keeps_bytes) if value.present else None
    return fail(f"type conversion error from '{type_name(value)}' to JSON")
