"""Types of the values that schemas describe: what expressions see of an object, how big it may get, and how its JSON
becomes values.

`declare` reads an OpenAPI v3 schema as custom resource definitions hold it. Parts that expressions may not see (no
type, unknown fields preserved) have no declaration. JSON is used as it is wherever it can be: only numbers, times,
bytes and lists that are sets or maps need converting, and `Declared.convert` is None where nothing does.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from pilothouse.cel.conversions import parse_timestamp
from pilothouse.cel.escaping import RESERVED, escape
from pilothouse.cel.ranges import Range
from pilothouse.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)
from pilothouse.cel.values import Duration, Invalid, KeyedList, SetList, Timestamp
from pilothouse.machinery.schema.decoding import DecodeError, canonical_base64
from pilothouse.machinery.times import TimeError, parse_duration

MAX_REQUEST_BYTES = 3 * 1024 * 1024
_NAME_LENGTH = 253
_WORDED = re.compile(r"(?<![0-9])([0-9]++)\s*+([A-Za-zµ]++)")
# Unlike the check of the format, expressions read the alphabet for URLs: what is special in the other is illegal.
_URL_ALPHABET = str.maketrans("-_+/", "+/!!")
_UNITS = (
    (("ns", "nano"), 1), (("us", "µs", "micro"), 10**3), (("ms", "milli"), 10**6), (("s", "sec"), 10**9),
    (("m", "min"), 60 * 10**9), (("h", "hr", "hour"), 3600 * 10**9), (("d", "day"), 86400 * 10**9),
    (("w", "wk", "week"), 7 * 86400 * 10**9),
)  # fmt: skip
Schema = Mapping[str, Any]
Convert = Callable[[Any], Any]
_GO_TYPES: Final[dict[type, str]] = {
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    int: "int64",
    float: "float64",
    bool: "bool",
}


class Declared:
    """The declaration of one place in a schema."""

    __slots__ = ("_properties", "convert", "element", "fields", "key", "max_elements", "min_size", "type")

    def __init__(self, kind: Type, min_size: int, max_elements: int = 0, convert: Convert | None = None) -> None:
        self.type = kind
        self.min_size = min_size
        self.max_elements = max_elements
        self.convert = convert
        self.fields: dict[str, Declared] = {}
        self._properties: dict[str, str] = {}
        self.key: Declared | None = None
        self.element: Declared | None = None

    def field(self, name: str) -> Type | None:
        """Return the type of a field; reserved words may be written as they are."""
        found = self.fields.get(name)
        if found is None and name in RESERVED:
            found = self.fields.get(f"__{name}__")
        return found.type if found is not None else None

    def property(self, name: str) -> str:
        return self._properties.get(name, name)

    def add_field(self, name: str, declared: Declared) -> None:
        identifier = escape(name)
        if identifier is not None:
            self.fields[identifier] = declared
            if identifier != name:
                self._properties[identifier] = name

    def size_of(self, path: tuple[str, ...]) -> Range | None:
        """Return how many elements or characters the value at a path may have; the path starts with a variable."""
        node = self
        for step in path[1:]:
            if step in ("@items", "@values"):
                found = node.element
            elif step == "@keys":
                found = node.key
            else:
                found = node.fields.get(step)
            if found is None:
                return None
            node = found
        return 0, node.max_elements


class Declarations:
    """Every message type found in a schema; the provider of an environment."""

    __slots__ = ("_structs",)

    def __init__(self) -> None:
        self._structs: dict[str, Declared] = {}

    def find(self, name: str) -> Declared | None:
        return self._structs.get(name)

    def declare(self, schema: Schema, *, resource: bool, name: str = "selfType") -> Declared | None:
        """Return the declaration of a schema, None if expressions may not see it."""
        if schema.get("x-kubernetes-int-or-string"):
            limit = schema.get("maxLength")
            most = MAX_REQUEST_BYTES - 2 if limit is None else max(limit, 0) * 4
            return Declared(DYN, 1, most)
        kind = schema.get("type")
        if resource:
            schema = with_object_metadata(schema)
        if kind == "object":
            return self._declare_object(schema, name)
        if kind == "array":
            return self._declare_list(schema, name)
        if kind == "string":
            return _declare_string(schema)
        return _SCALARS[kind]() if kind in _SCALARS else None

    def _declare_list(self, schema: Schema, name: str) -> Declared | None:
        items = schema.get("items")
        if not isinstance(items, dict):
            return None
        element = self.declare(items, resource=bool(items.get("x-kubernetes-embedded-resource")), name=f"{name}.@idx")
        if element is None:
            return None
        limit = schema.get("maxItems")
        most = max(limit, 0) if limit is not None else (MAX_REQUEST_BYTES - 2) // (element.min_size + 1)
        declared = Declared(list_of(element.type), 2, most, _list_converter(schema, element.convert))
        declared.element = element
        return declared

    def _declare_object(self, schema: Schema, name: str) -> Declared | None:
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return self._declare_map(schema, values, name)
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        required = frozenset(schema.get("required") or ())
        declared = Declared(struct(name), 2)
        converters: list[tuple[str, Convert]] = []
        for key, child in properties.items():
            embedded = bool(child.get("x-kubernetes-embedded-resource"))
            found = self.declare(child, resource=embedded, name=f"{name}.{escape(key) or key}")
            if found is None:
                continue
            declared.add_field(key, found)
            if key in required and child.get("default") is None:
                declared.min_size += len(key.encode()) + found.min_size + 4
            if found.convert is not None:
                converters.append((key, found.convert))
        declared.convert = _object_converter(converters) if converters else None
        self._structs[name] = declared
        return declared

    def _declare_map(self, schema: Schema, values: Schema, name: str) -> Declared | None:
        embedded = bool(values.get("x-kubernetes-embedded-resource"))
        element = self.declare(values, resource=embedded, name=f"{name}.@elem")
        if element is None:
            return None
        limit = schema.get("maxProperties")
        most = max(limit, 0) if limit is not None else (MAX_REQUEST_BYTES - 2) // (element.min_size + 6)
        declared = Declared(map_of(STRING, element.type), 2, most, _map_converter(element.convert))
        declared.key, declared.element = Declared(STRING, 2), element
        return declared


def with_object_metadata(schema: Schema) -> Schema:
    """Return a schema that declares kind, apiVersion and the names in metadata, which every resource has."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    metadata = properties.get("metadata") or {}
    names: Mapping[str, Schema] = metadata.get("properties") or {}

    def is_string(holder: Mapping[str, Schema], name: str) -> bool:
        return (holder.get(name) or {}).get("type") == "string"

    if (
        is_string(properties, "kind")
        and is_string(properties, "apiVersion")
        and metadata.get("type") == "object"
        and is_string(names, "name")
        and is_string(names, "generateName")
    ):
        return schema
    return {
        **schema,
        "properties": {
            **properties,
            "kind": {"type": "string"},
            "apiVersion": {"type": "string"},
            "metadata": {
                "type": "object",
                "properties": {
                    "name": _capped(names.get("name"), _NAME_LENGTH),
                    "generateName": _capped(names.get("generateName"), _NAME_LENGTH - 1),
                },
            },
        },
    }


def _capped(existing: Schema | None, limit: int) -> Schema:
    given = (existing or {}).get("maxLength")
    return {"type": "string", "maxLength": limit if given is None else min(given, limit)}


def _declare_string(schema: Schema) -> Declared:
    form, limit = schema.get("format"), schema.get("maxLength")
    if form in _FORMATS:
        kind, least, most, convert = _FORMATS[form]
        return Declared(kind, least, most, _of_strings(convert))
    if form == "byte":
        return Declared(BYTES, 2, MAX_REQUEST_BYTES - 2 if limit is None else max(limit, 0), _of_strings(_to_bytes))
    if limit is not None:
        return Declared(STRING, 2, max(limit, 0) * 4)
    choices = schema.get("enum")
    if choices:
        longest = max((len(choice.encode()) for choice in choices if isinstance(choice, str)), default=0)
        return Declared(STRING, 2, longest)
    return Declared(STRING, 2, MAX_REQUEST_BYTES - 2)


def _to_double(value: Any) -> Any:
    if value.__class__ is float:
        return value
    return float(value) if value.__class__ is int else Invalid(f"invalid data, expected float, got {_go_type(value)}")


def _to_integer(value: Any) -> Any:
    """Whole floats are integers to a schema, but not to expressions; what another schema let pass may be anything."""
    return value if value.__class__ is int else Invalid(f"invalid data, expected int, got {_go_type(value)}")


def _go_type(value: Any) -> str:
    return _GO_TYPES[value.__class__]


def _of_strings(convert: Convert) -> Convert:
    """Schemas let lists pass for strings that have a format; expressions do not."""

    def apply(value: Any) -> Any:
        if value.__class__ is str:
            return convert(value)
        return Invalid(f"invalid data, expected string, got {_go_type(value)}")

    return apply


def _to_bytes(value: Any) -> Any:
    try:
        return base64.b64decode(canonical_base64(value.translate(_URL_ALPHABET)))
    except DecodeError as error:
        return Invalid(f"Invalid byte formatted string {value}: {error.message}")


def _to_duration(value: Any) -> Any:
    try:
        return Duration(parse_duration(value))
    except TimeError:
        pass
    total, found = 0, False
    for count, unit in map(re.Match.groups, islice(_WORDED.finditer(value), 100)):
        size = _unit_size(unit.lower())
        if size is not None and len(count) < 19:
            found = True
            total += int(count) * size
    if found and -(1 << 63) <= total < 1 << 63:
        return Duration(total)
    return Invalid(f"Invalid duration {value}: unable to parse {value} as duration")


def _unit_size(unit: str) -> int | None:
    return next((size for names, size in _UNITS if unit in names or unit.startswith(names[-1])), None)


def _to_timestamp(value: Any) -> Any:
    return _read_time(value, "", "date-time")


def _to_date(value: Any) -> Any:
    return _read_time(value, "T00:00:00Z", "date")


def _read_time(value: Any, suffix: str, form: str) -> Timestamp | Invalid:
    try:
        return parse_timestamp(value.upper() + suffix if form == "date-time" else value + suffix)
    except TimeError as error:
        return Invalid(f"Invalid {form} formatted string {value}: {error}")


_FORMATS: dict[Any, tuple[Type, int, int, Convert]] = {
    "duration": (DURATION, 3, 32, _to_duration),
    "date": (TIMESTAMP, 12, 12, _to_date),
    "date-time": (TIMESTAMP, 21, 32, _to_timestamp),
}
_SCALARS: dict[Any, Callable[[], Declared]] = {
    "boolean": lambda: Declared(BOOL, 4),
    "number": lambda: Declared(DOUBLE, 1, 0, _to_double),
    "integer": lambda: Declared(INT, 1, 0, _to_integer),
}


def _list_converter(schema: Schema, convert: Convert | None) -> Convert | None:
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if kind not in ("set", "map") and convert is None:
        return None

    def apply(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = value if convert is None else [None if item is None else convert(item) for item in value]
        if kind == "set":
            return SetList(items)
        return KeyedList(items, keys) if kind == "map" else items

    return apply


def _map_converter(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None

    def apply(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: None if item is None else convert(item) for key, item in value.items()}

    return apply


def _object_converter(converters: list[tuple[str, Convert]]) -> Convert:
    def apply(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        copied: dict[str, Any] | None = None
        for key, convert in converters:
            item = value.get(key)
            if item is not None and (made := convert(item)) is not item:
                if copied is None:
                    copied = dict(value)
                copied[key] = made
        return value if copied is None else copied

    return apply
