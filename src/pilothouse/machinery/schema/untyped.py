"""Reading a value by schema as kube-apiserver's converter of untyped objects does, which has rules and words of its
own.

Strategic merge works on untyped objects and turns its result into a typed one with that converter instead of the JSON
decoder. It goes through a struct's fields in declared order, takes whole floats for integers, and lets integers that
are too large for their type wrap around.
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.machinery.schema.decoding import SPECIAL_DECODERS, DecodeError, canonical_base64
from pilothouse.machinery.schema.types import ListOf, MapOf, Scalar, Special, Struct, Type

_BITS: Final = {"int32": 32, "int64": 64, "uint8": 8, "uint64": 64}
_OCTET: Final = Scalar("uint8")
_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}


def restore(kind: Type, value: Any) -> Any:
    """The value with every number as its type holds it. ``DecodeError`` for the first part that does not fit."""
    if value is None:
        return None
    if isinstance(kind, Struct):
        return _restore_struct(kind, value)
    if isinstance(kind, ListOf):
        if value.__class__ is not list:
            raise _unfit("slice", value)
        return [restore(kind.item, item) for item in value]
    if isinstance(kind, MapOf):
        if value.__class__ is not dict:
            raise _unfit("map", value)
        return {key: restore(kind.value, item) for key, item in value.items()}
    if isinstance(kind, Special):
        if kind.holds is None:
            SPECIAL_DECODERS[kind.kind](value)
        return value
    return _restore_scalar(kind, value) if isinstance(kind, Scalar) else value


def _restore_struct(struct: Struct, value: Any) -> Any:
    if value.__class__ is not dict:
        raise _unfit("struct", value, ":")
    known = {name: restore(field.type, value[name]) for name, field in struct.fields.items() if name in value}
    return value | known


def _restore_scalar(kind: Scalar, value: Any) -> Any:
    if kind.kind == "bytes":
        return _restore_bytes(value)
    if kind.kind in ("string", "bool"):
        if value.__class__ is (str if kind.kind == "string" else bool):
            return value
        if kind.kind == "string" and value.__class__ is int:
            raise DecodeError(message=f"cannot convert int64 to {kind.go}")
    elif value.__class__ in (int, float):
        if kind.kind == "float64":
            return value
        if value != int(value):
            raise DecodeError(message=f"cannot convert float64 to {kind.go}")
        return _wrap(int(value), kind.kind)
    raise DecodeError(message=f"unrecognized type: {kind.kind}")


def _wrap(number: int, kind: str) -> int:
    bits = _BITS[kind]
    number %= 1 << bits
    return number if kind.startswith("uint") or number < 1 << (bits - 1) else number - (1 << bits)


def _restore_bytes(value: Any) -> Any:
    if value.__class__ is list:
        return [0 if item is None else _restore_scalar(_OCTET, item) for item in value]
    if value.__class__ is not str:
        raise _unfit("slice", value)
    try:
        return canonical_base64(value)
    except DecodeError as error:
        raise DecodeError(message=f"error decoding from json: {error}") from None


def _unfit(wanted: str, value: Any, mark: str = "") -> DecodeError:
    return DecodeError(message=f"cannot restore {wanted} from{mark} {_KINDS[value.__class__]}")
