"""Lists of structs that clients of old keep as JSON in annotations.

They are read as Go reads them into its internal types: keys in any case, unknown ones ignored, and the first value of a
wrong type told in Go's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from pilothouse.machinery.go_json import explain, json_type
from pilothouse.machinery.objects import Object


class _Field(NamedTuple):
    """A field: the name it is read under, its Go name and Go type."""

    name: str
    shown: str
    type: str = "string"


TAINT: Final = "Taint"
TOLERATION: Final = "Toleration"
_FIELDS: Final[Mapping[str, Mapping[str, _Field]]] = {
    TAINT: {
        "key": _Field("key", "Key"),
        "value": _Field("value", "Value"),
        "effect": _Field("effect", "Effect", "core.TaintEffect"),
    },
    TOLERATION: {
        "key": _Field("key", "Key"),
        "operator": _Field("operator", "Operator", "core.TolerationOperator"),
        "value": _Field("value", "Value"),
        "effect": _Field("effect", "Effect", "core.TaintEffect"),
        "tolerationseconds": _Field("tolerationSeconds", "TolerationSeconds", "int64"),
    },
}


class AnnotationError(ValueError):
    """Why an annotation cannot be read."""


def read_json(text: str) -> Any:
    """The value that a text stands for."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise AnnotationError(explain(text.encode())) from None


def read_structs(text: str, kind: str) -> list[Object]:
    """A list of structs of this kind."""
    value = read_json(text)
    if value is None:
        return []
    if not isinstance(value, list):
        raise AnnotationError(f"json: cannot unmarshal {json_type(value)} into Go value of type []core.{kind}")
    return [_read_struct(item, kind) for item in value]


def _read_struct(item: Any, kind: str) -> Object:
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise AnnotationError(f"json: cannot unmarshal {json_type(item)} into Go value of type core.{kind}")
    read: Object = {}
    for key, value in item.items():
        field = _FIELDS[kind].get(key.lower())
        if field is None or value is None:
            continue
        fits = isinstance(value, str) if field.type != "int64" else type(value) is int
        if not fits:
            what = f"Go struct field {kind}.{field.shown} of type {field.type}"
            raise AnnotationError(f"json: cannot unmarshal {json_type(value)} into {what}")
        read[field.name] = value
    return {name: value for name, value in read.items() if value != ""}
