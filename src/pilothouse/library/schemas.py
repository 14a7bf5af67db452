"""Structural schemas of Python types: dataclasses and, where it is installed, pydantic models.

    str, int, float, bool            their JSON types; int is int64
    datetime                         a string of format date-time
    list[T], tuple[T, ...], set[T]   arrays; a set is a list of type set
    dict[str, T]                     an object with any names
    X | None                         as X, and not required
    Literal["a", "b"], Enum          an enumeration
    Any, dict                        anything, kept as it is
    Annotated[T, "text"]             T with a description; a dict in place of the text adds what it says to the schema

Field names become camelCase unless ``field(metadata={"name": ...})`` says otherwise. Fields without a default are
required; defaults that JSON can say are defaults of the schema. Docstrings of one's own describe their type.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]
_PLAIN: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
    dict: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_DROPPED: Final = frozenset({"title", "$defs", "discriminator", "const", "examples"})
_BOUNDS: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}


def schema_of(model: Mapping[str, Any] | type) -> Schema:
    """The structural schema of a dataclass or a pydantic model; a schema is returned as it is. Raises ``TypeError``."""
    if isinstance(model, Mapping):
        return dict(model)
    if dataclasses.is_dataclass(model):
        return _of_dataclass(model, ())
    if hasattr(model, "model_json_schema"):
        written: Schema = model.model_json_schema(by_alias=True)
        return _structural(written, written.get("$defs") or {}, ())
    raise TypeError(f"{model!r} is neither a schema nor a dataclass nor a pydantic model")


def _of_dataclass(model: Any, above: tuple[Any, ...]) -> Schema:
    if model in above:
        raise TypeError(f"{model.__name__} contains itself: structural schemas cannot")
    hints = get_type_hints(model, include_extras=True)
    schema: Schema = {"type": "object"}
    if description := _docstring(model):
        schema["description"] = description
    properties: Schema = {}
    required: list[str] = []
    for each in dataclasses.fields(model):
        name = each.metadata.get("name") or _camel(each.name)
        below = _of_type(hints[each.name], (*above, model))
        if each.metadata.get("description"):
            below = {**below, "description": each.metadata["description"]}
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            required += [] if _is_optional(hints[each.name]) else [name]
        elif _is_json(each.default):
            below = {**below, "default": each.default.value if isinstance(each.default, enum.Enum) else each.default}
        properties[name] = below
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required
    return schema


def _of_type(hint: Any, above: tuple[Any, ...]) -> Schema:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = _of_type(arguments[0], above)
        for note in arguments[1:]:
            schema = {**schema, **(note if isinstance(note, dict) else {"description": str(note)})}
        return schema
    if origin in (Union, types.UnionType):
        return _of_type(_alternative(hint, arguments), above)
    if origin is Literal:
        return {**_PLAIN[type(arguments[0])], "enum": list(arguments)}
    if origin in (list, tuple, set, frozenset):
        schema = {"type": "array", "items": _of_type(arguments[0], above)}
        return {**schema, "x-kubernetes-list-type": "set"} if origin in (set, frozenset) else schema
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(arguments[1], above)}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {**_PLAIN[type(next(iter(hint)).value)], "enum": [each.value for each in hint]}
    if dataclasses.is_dataclass(hint):
        return _of_dataclass(hint, above)
    if hasattr(hint, "model_json_schema"):
        return schema_of(hint)
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    raise TypeError(f"{hint!r} has no structural schema")


def _alternative(hint: Any, arguments: tuple[Any, ...]) -> Any:
    others = [each for each in arguments if each is not type(None)]
    if len(others) != 1:
        raise TypeError(f"{hint!r} has no structural schema: a value can be of one type, or of one type and None")
    return others[0]


def _is_optional(hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _is_optional(arguments[0])
    return origin in (Union, types.UnionType) and type(None) in arguments


def _is_json(value: Any) -> bool:
    return isinstance(value, str | int | float | enum.Enum)


def _docstring(model: type) -> str:
    """The docstring that somebody wrote; dataclasses make one of their own where there is none."""
    text = model.__dict__.get("__doc__") or ""
    return "" if text.startswith(f"{model.__name__}(") else inspect.cleandoc(text)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


def _structural(schema: Schema, known: Mapping[str, Schema], above: tuple[str, ...]) -> Schema:
    """A schema as pydantic writes it, in the structural form: nothing referred to, no null among alternatives."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in above:
            raise TypeError(f"{name} contains itself: structural schemas cannot")
        others = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_structural(known[name], known, (*above, name)), **_structural(others, known, above)}
    for key in ("anyOf", "oneOf", "allOf"):
        alternatives = [each for each in schema.get(key) or () if each.get("type") != "null"]
        if len(alternatives) == 1:
            others = {name: value for name, value in schema.items() if name != key and value is not None}
            return {**_structural(alternatives[0], known, above), **_structural(others, known, above)}
    return dict(_kept(schema, known, above))


def _kept(schema: Schema, known: Mapping[str, Schema], above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if "const" in schema:
        yield "enum", [schema["const"]]
    if not {"type", "enum", "anyOf", "properties", "description"} & schema.keys() and "const" not in schema and above:
        yield "x-kubernetes-preserve-unknown-fields", True
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and value is None):
            continue
        if key in _BOUNDS:
            yield _BOUNDS[key], value
            yield key, True
        elif key == "properties":
            yield key, {name: _structural(below, known, above) for name, below in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            yield key, _structural(value, known, above)
        elif key == "additionalProperties":
            if value:
                yield "x-kubernetes-preserve-unknown-fields", True
        else:
            yield key, value
