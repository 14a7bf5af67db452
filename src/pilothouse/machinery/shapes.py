"""The shape of configuration files as plain data: which fields there are, and what stands in them.

A dict describes an object by its fields, or by ``"*"`` any field, a ``Struct`` one that has a name in Go; a list with
one item describes a list; a type (str, bool, int) describes a value, a ``Text`` one of a named type. A value of another
type is an error, in the words of Go's decoder: "false" in quotes must not count as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pilothouse.machinery.go_json import json_type

_GO_TYPES = {str: "string", bool: "bool", int: "int32"}


class Struct(dict[str, Any]):
    """The fields of an object with the name of its type."""

    def __init__(self, name: str, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.name = name


class Text:
    """A text of a type with a name; without one it reads itself, as durations do."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __call__(self) -> str:
        return ""


DURATION = Text()


def unknown_fields(value: Any, shape: Any, package: str = "v1") -> list[str]:
    """The fields that the shape does not have. Raises ``ValueError`` for a value of a wrong type."""
    return list(_walk(value, shape, _Place(package)))


def without_nulls(value: Any, shape: Any) -> Any:
    """The same without nulls, as Go reads them: left out in objects, empty in lists. For what fits the shape."""
    if isinstance(value, dict) and isinstance(shape, Mapping):
        kept = ((key, item) for key, item in value.items() if item is not None)
        return {key: without_nulls(item, shape.get(key) or shape.get("*")) for key, item in kept}
    if isinstance(value, list) and isinstance(shape, list):
        return [_empty(shape[0]) if item is None else without_nulls(item, shape[0]) for item in value]
    return value


def _empty(shape: Any) -> Any:
    return shape() if isinstance(shape, type | Text) else [] if isinstance(shape, list) else {}


class _Place(NamedTuple):
    """Where a value stands: as strict decoding calls it, and as Go's decoder does."""

    package: str
    path: str = ""
    struct: str = ""
    fields: tuple[str, ...] = ()

    def field(self, shape: Mapping[str, Any], key: str) -> _Place:
        path = f"{self.path}.{key}" if self.path else str(key)
        if not isinstance(shape, Struct):
            return self._replace(path=path, fields=self.fields if "*" in shape else (*self.fields, key))
        return self._replace(path=path, struct=shape.name, fields=(*self.fields, key))

    def mismatch(self, value: Any, shape: Any) -> ValueError:
        if shape is DURATION:
            return ValueError(f"json: cannot unmarshal {json_type(value)} into Go value of type string")
        where = ".".join((self.struct, *self.fields)) if self.struct else self.path
        wanted = _go_type(shape, self.package)
        return ValueError(f"json: cannot unmarshal {json_type(value)} into Go struct field {where} of type {wanted}")


def _go_type(shape: Any, package: str) -> str:
    if isinstance(shape, type):
        return _GO_TYPES[shape]
    if isinstance(shape, list):
        return f"[]{_go_type(shape[0], package)}"
    if isinstance(shape, Struct | Text):
        return f"{package}.{shape.name}"
    return f"map[string]{_go_type(shape['*'], package)}" if "*" in shape else "struct"


def _walk(value: Any, shape: Any, place: _Place) -> Iterable[str]:
    if value is None:
        return
    if isinstance(shape, type | Text):
        wanted = shape if isinstance(shape, type) else str
        if not isinstance(value, wanted) or (shape is int and isinstance(value, bool)):
            raise place.mismatch(value, shape)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise place.mismatch(value, shape)
        for index, item in enumerate(value):
            yield from _walk(item, shape[0], place._replace(path=f"{place.path}[{index}]"))
    else:
        yield from _walk_object(value, shape, place)


def _walk_object(value: Any, shape: Mapping[str, Any], place: _Place) -> Iterable[str]:
    if not isinstance(value, dict):
        raise place.mismatch(value, shape)
    for key, item in value.items():
        inner = shape.get(key) or shape.get("*")
        at = place.field(shape, key)
        if inner is None:
            yield at.path
        else:
            yield from _walk(item, inner, at)
