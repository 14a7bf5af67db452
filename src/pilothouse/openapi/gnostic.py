"""OpenAPI documents in protobuf: gnostic's messages, written by table.

A table (``gnostic_tables``) names a document's messages, and for each key of the JSON form the field's number and kind.
Only what documents of API servers use is there; other keys are left out, ``x-`` keys go to the message's extensions as
YAML. Fields are written in the order of their numbers, zero values are left out, as Go writes proto3.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

import orjson

from pilothouse.machinery.protobuf.wire import BYTES, FIXED64, VARINT, delimited, encode_tag, encode_varint
from pilothouse.openapi.gnostic_tables import V2_TABLE, V3_TABLE

Writer = Callable[[Any], bytes]
_NAME: Final = encode_tag(1, BYTES)
_VALUE: Final = encode_tag(2, BYTES)
_YAML: Final = encode_tag(2, BYTES)


def encode_v2(document: dict[str, Any]) -> bytes:
    """The OpenAPI 2.0 document as ``openapi.v2.Document``."""
    return _Table(V2_TABLE, _V2_CHOICES).write(document)


def encode_v3(document: dict[str, Any]) -> bytes:
    """The OpenAPI 3.0 document as ``openapi.v3.Document``."""
    return _Table(V3_TABLE, _V3_CHOICES).write(document)


class _Table:
    """The writers of one version's messages, made when first needed. One is made for each document.

    Many parts of a document are one object used again and again; what was written for them is kept by identity.
    """

    def __init__(self, text: str, choices: dict[str, Callable[[Any], str]]) -> None:
        rows = (line.split() for line in text.strip().replace("\n    ", " ").splitlines())
        self._rows = {row[0]: row[1:] for row in rows}
        self._choices = choices
        self._messages: dict[str, Writer] = {}

    def write(self, document: dict[str, Any]) -> bytes:
        try:
            return self._message("Document")(document)
        finally:
            # Writers know the table and the table them: without this, what they keep waits for the garbage collector.
            self._messages.clear()

    def _message(self, name: str) -> Writer:
        made = self._messages.get(name)
        if made is None:
            # Messages contain themselves: the name is taken before its fields are made.
            self._messages[name] = lambda value: self._messages[name](value)
            made = self._messages[name] = self._make_choice(name) if name in self._choices else self._make(name)
        return made

    def _make_choice(self, name: str) -> Writer:
        """A message that holds one of several others; the value decides which."""
        options = {key: self._field(number, kind) for key, number, kind in map(_cell, self._rows[name])}
        choose = self._choices[name]
        return _kept(lambda value: options[choose(value)](value))

    def _make(self, name: str) -> Writer:
        fields: dict[str, tuple[int, Writer]] = {}
        extensions: tuple[int, Writer] = (0, _nothing)
        others: tuple[int, Writer] = (0, _nothing)
        for key, number, kind in map(_cell, self._rows[name]):
            if key == "x-":
                extensions = (number, _named(number, _any))
            elif key == "*":
                others = (number, _named(number, self._content(kind)))
            else:
                fields[key] = (number, self._field(number, kind))

        def write(value: dict[str, Any]) -> bytes:
            parts = []
            for key, item in value.items():
                found = fields.get(key)
                if found is not None:
                    parts.append((found[0], found[1](item)))
                elif key.startswith("x-"):
                    parts.append((extensions[0], extensions[1]((key, item))))
                elif others[0]:
                    parts.append((others[0], others[1]((key, item))))
            parts.sort(key=_number)
            return b"".join([part for _, part in parts])

        return write

    def _field(self, number: int, kind: str) -> Writer:
        scalar = _SCALARS.get(kind)
        if scalar is not None:
            return scalar(number)
        tag = encode_tag(number, BYTES)
        if kind.endswith("[]"):
            content = self._content(kind[:-2])
            return lambda items: b"".join([delimited(tag, content(item)) for item in items])
        content = self._content(kind)
        return lambda value: delimited(tag, content(value))

    def _content(self, kind: str) -> Writer:
        if kind.startswith("{"):
            entry = _named(1, self._content(kind[1:-1]))
            return lambda value: b"".join([entry(item) for item in value.items()])
        return _CONTENTS.get(kind) or self._message(kind)


def _cell(text: str) -> tuple[str, int, str]:
    key, _, rest = text.partition("=")
    number, _, kind = rest.partition(":")
    return key, int(number), kind


def _number(part: tuple[int, bytes]) -> int:
    return part[0]


def _nothing(_: Any) -> bytes:
    return b""


def _kept(write: Writer) -> Writer:
    # The document keeps all its parts alive, so that no identity is used twice.
    kept: dict[int, bytes] = {}

    def remember(value: Any) -> bytes:
        found = kept.get(id(value))
        if found is None:
            found = kept[id(value)] = write(value)
        return found

    return remember


def _named(number: int, content: Writer) -> Writer:
    """A pair of name and value."""
    tag = encode_tag(number, BYTES)

    def write(item: tuple[str, Any]) -> bytes:
        pair = delimited(_NAME, str(item[0]).encode()) + delimited(_VALUE, content(item[1]))
        return delimited(tag, pair)

    return write


def _string(number: int) -> Writer:
    tag = encode_tag(number, BYTES)
    return lambda value: delimited(tag, value.encode()) if value else b""


def _strings(number: int) -> Writer:
    tag = encode_tag(number, BYTES)
    return lambda values: b"".join([delimited(tag, value.encode()) for value in values])


def _bool(number: int) -> Writer:
    true = encode_tag(number, VARINT) + b"\x01"
    return lambda value: true if value else b""


def _flag(number: int) -> Writer:
    tag = encode_tag(number, VARINT)
    return lambda value: tag + (b"\x01" if value else b"\x00")


def _int(number: int) -> Writer:
    tag = encode_tag(number, VARINT)
    return lambda value: tag + encode_varint(int(value)) if value else b""


def _double(number: int) -> Writer:
    tag = encode_tag(number, FIXED64)
    return lambda value: tag + struct.pack("<d", value) if value else b""


_SCALARS: Final[dict[str, Callable[[int], Writer]]] = {
    "string": _string, "string[]": _strings, "bool": _bool, "flag": _flag, "int": _int, "double": _double,
}  # fmt: skip


def _any(value: Any) -> bytes:
    return _any_of_json(orjson.dumps(value))


@lru_cache(maxsize=1024)
def _any_of_json(text: bytes) -> bytes:
    return delimited(_YAML, _yaml(orjson.loads(text)).encode())


def _default(value: Any) -> bytes:
    """``DefaultType``, which can hold scalars only; it is a choice, so that zeros are written."""
    match value:
        case bool():
            return encode_tag(2, VARINT) + (b"\x01" if value else b"\x00")
        case int() | float():
            return encode_tag(1, FIXED64) + struct.pack("<d", value)
        case str():
            return delimited(encode_tag(3, BYTES), value.encode())
    return b""


def _types(value: str | list[str]) -> bytes:
    return _strings(1)([value] if isinstance(value, str) else value)


def _string_array(value: list[str]) -> bytes:
    return _strings(1)(value)


_CONTENTS: Final[dict[str, Writer]] = {
    "any": _any, "default": _default, "types": _types, "stringarray": _string_array,
}  # fmt: skip


def _reference_or(name: str) -> Callable[[Any], str]:
    return lambda value: "reference" if "$ref" in value else name


def _bool_or_schema(value: Any) -> str:
    return "boolean" if isinstance(value, bool) else "schema"


_V2_CHOICES: Final[dict[str, Callable[[Any], str]]] = {
    "AdditionalPropertiesItem": _bool_or_schema,
    "ParametersItem": _reference_or("parameter"),
    "Parameter": lambda value: "body" if value["in"] == "body" else "other",
    "NonBodyParameter": lambda value: value["in"],
    "ResponseValue": _reference_or("response"),
    "ItemsItem": lambda _: "schema",
    "SchemaItem": lambda _: "schema",
    "SecurityDefinitionsItem": lambda value: value["type"],
}
_V3_CHOICES: Final[dict[str, Callable[[Any], str]]] = {
    "AdditionalPropertiesItem": _bool_or_schema,
    "ItemsItem": lambda _: "schema",
    **{
        f"{name}OrReference": _reference_or("value")
        for name in ("Schema", "Parameter", "Response", "RequestBody", "SecurityScheme")
    },
}

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_RESERVED: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})


def _yaml(value: Any, indent: int = 0) -> str:
    """Block YAML with go-yaml's indentation: four columns, but two after a dash."""
    if isinstance(value, dict) and value:
        return "".join(f"{' ' * indent}{_scalar(key)}:{_yaml_member(item, indent)}" for key, item in value.items())
    if isinstance(value, list) and value:
        dash = " " * indent + "- "
        return "".join(dash + _yaml(item, indent + 2).lstrip(" ") for item in value)
    return " " * indent + _scalar(value) + "\n"


def _yaml_member(item: Any, indent: int) -> str:
    if isinstance(item, dict | list) and item:
        return "\n" + _yaml(item, 4 * ((indent + 4) // 4))
    return f" {_scalar(item)}\n"


@cache
def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in _RESERVED


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _is_plain(value):
        return value
    return orjson.dumps(value).decode()
