"""What mutations are written with: `Object{...}` and its parts, `JSONPatch{...}`, `jsonpatch.escapeKey`."""

from __future__ import annotations

import base64
import math
from typing import Any, Final

from pilothouse.cel.conversions import format_duration, format_timestamp
from pilothouse.cel.declarations import Function, Library, Overload, PlainStruct, StructType
from pilothouse.cel.types import DYN, STRING, UNSPECIFIED, Type, struct
from pilothouse.cel.values import Duration, Message, Optional, Timestamp, UInt, fail, from_map_key, type_name

JSON_PATCH_TYPE = struct("JSONPatch")
OBJECT_TYPE = struct("Object")
_JSON_PATCH = PlainStruct(
    JSON_PATCH_TYPE, {"op": STRING, "from": STRING, "path": STRING, "value": DYN}, unknown=UNSPECIFIED
)
_SAFE: Final = 1 << 53
"""From here on JSON's numbers have gaps."""
_GO_NAMES: Final = {
    "kubernetes.Quantity": "Quantity", "kubernetes.URL": "URL", "kubernetes.Semver": "Semver",
    "kubernetes.NamedFormat": "Format", "net.IP": "IP", "net.CIDR": "CIDR",
}  # fmt: skip


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


def to_native(value: Any) -> Any:
    """Turn a value into what an apply configuration is made of: numbers and bytes stay, be there no field for them."""
    if isinstance(value, dict):
        return {str(from_map_key(key)): to_native(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_native(item) for item in value]
    if isinstance(value, Optional):
        return to_native(value.value) if value.present else None
    if isinstance(value, Type):
        return value.name
    if isinstance(value, UInt):
        return int(value)
    return value if isinstance(value, int | float | bytes) else to_json(value)


def to_json(value: Any) -> Any:
    """Turn a value into plain JSON, as patches need it: numbers that no double holds become text."""
    if isinstance(value, dict):
        return {_json_key(from_map_key(key)): to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, UInt | int):
        return int(value) if abs(int(value)) < _SAFE else str(int(value))
    if isinstance(value, float):
        return _json_number(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    if isinstance(value, Optional):
        return to_json(value.value) if value.present else fail("optional.none() dereference")
    if isinstance(value, Type):
        return fail("type conversion not supported for 'type'")
    name = type_name(value)
    return fail(f"type conversion error from '{_GO_NAMES.get(name, name)}' to '*structpb.Value'")


def _json_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return str(fail("type conversion error from bool to 'string'"))
    return str(fail(f"unsupported type conversion from '{type_name(key)}' to string"))


def _json_number(value: float) -> float:
    if math.isfinite(value):
        return value
    shown = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    why = f"proto: google.protobuf.Value.number_value: invalid {shown} value"
    return float(fail(f"json: error calling MarshalJSON for type *structpb.Value: {why}"))
