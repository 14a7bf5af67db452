"""Protobuf documents, read back field by field."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis.resources import table
from pilothouse.machinery import yaml_codec
from pilothouse.machinery.protobuf.wire import read_varint
from pilothouse.openapi import version2
from pilothouse.openapi.gnostic import _yaml, encode_v2, encode_v3
from pilothouse.openapi.operations import MediaTypes, version_operations
from pilothouse.openapi.schemas import V2, definition


def read(data: bytes) -> list[tuple[int, Any]]:
    """The fields of a message in their order."""
    fields: list[tuple[int, Any]] = []
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position, len(data))
        if tag & 7 == 0:
            value, position = read_varint(data, position, len(data))
            fields.append((tag >> 3, value))
        elif tag & 7 == 1:
            fields.append((tag >> 3, struct.unpack("<d", data[position : position + 8])[0]))
            position += 8
        else:
            length, position = read_varint(data, position, len(data))
            fields.append((tag >> 3, data[position : position + length]))
            position += length
    assert position == len(data)
    return fields


def one(data: bytes, *numbers: int) -> Any:
    """The value at a path of field numbers, each the only one of its number."""
    value: Any = data
    for number in numbers:
        (value,) = [found for key, found in read(value) if key == number]
    return value


def schema_v3(schema: dict[str, Any]) -> bytes:
    document = {"openapi": "3.0.0", "components": {"schemas": {"X": schema}}}
    found: bytes = one(encode_v3(document), 5, 1, 1, 2)
    return found


def test_head_of_a_document() -> None:
    data = encode_v2({"swagger": "2.0", "info": {"title": "T", "version": "1.37"}, "security": [{"BearerToken": []}]})
    assert one(data, 1) == b"2.0"
    assert read(one(data, 2)) == [(1, b"T"), (2, b"1.37")]
    assert read(one(data, 12, 1)) == [(1, b"BearerToken"), (2, b"")]


def test_references_and_schemas_are_told_apart() -> None:
    assert read(schema_v3({"$ref": "#/x"})) == [(2, b"\n\x03#/x")]
    assert one(schema_v3({"type": "string"}), 1, 25) == b"string"
    assert one(schema_v3({"type": "array", "items": {"$ref": "#/x"}}), 1, 30, 1, 2, 1) == b"#/x"


def test_fields_are_in_the_order_of_their_numbers() -> None:
    data = one(schema_v3({"format": "int32", "description": "d", "type": "integer", "default": 0, "title": "t"}), 1)
    assert [number for number, _ in read(data)] == [9, 25, 33, 34, 35]


def test_defaults() -> None:
    assert read(one(schema_v3({"default": ""}), 1, 33)) == [(3, b"")]
    assert read(one(schema_v3({"default": False}), 1, 33)) == [(2, 0)]
    assert read(one(schema_v3({"default": 3}), 1, 33)) == [(1, 3.0)]
    assert one(schema_v3({"default": {}}), 1, 33) == b""


def test_additional_properties() -> None:
    assert read(one(schema_v3({"additionalProperties": False}), 1, 32)) == [(2, 0)]
    assert one(schema_v3({"additionalProperties": {"type": "string"}}), 1, 32, 1, 1, 25) == b"string"


def test_extensions_are_yaml_and_unknown_keys_are_dropped() -> None:
    data = one(schema_v3({"x-kubernetes-list-map-keys": ["name"], "unheard": 1}), 1)
    assert read(one(data, 36)) == [(1, b"x-kubernetes-list-map-keys"), (2, b"\x12\x07- name\n")]
    assert len(read(data)) == 1


def test_parameters_of_version_2() -> None:
    item = {
        "get": {"responses": {"200": {"description": "OK", "schema": {"type": "string"}}}},
        "parameters": [
            {"$ref": "#/parameters/a"},
            {"name": "body", "in": "body", "schema": {"$ref": "#/d"}},
            {"name": "q", "in": "query", "type": "string", "uniqueItems": True},
            {"name": "p", "in": "path", "required": True, "type": "string"},
        ],
    }
    data = one(encode_v2({"paths": {"/x": item}}), 8, 2, 2)
    reference, body, query, path = [value for number, value in read(data) if number == 9]
    assert one(reference, 2, 1) == b"#/parameters/a"
    assert read(one(body, 1, 1))[:2] == [(2, b"body"), (3, b"body")]
    assert read(one(query, 1, 2, 3)) == [(2, b"query"), (4, b"q"), (6, b"string"), (20, 1)]
    assert read(one(path, 1, 2, 4)) == [(1, 1), (2, b"path"), (4, b"p"), (5, b"string")]
    assert read(one(data, 2, 9, 1))[0] == (1, b"200")
    assert one(data, 2, 9, 1, 2, 1, 2, 1, 22, 1) == b"string"


def test_a_whole_document_is_well_formed() -> None:
    operations = [op for row in table().values() if row.group == "apps" for op in version_operations(row, MediaTypes())]
    document = version2.build(operations, lambda model: definition(model, V2))
    data = encode_v2(document)
    assert len(read(one(data, 8))) == len(document["paths"])
    assert len(read(one(data, 9))) == len(document["definitions"])
    assert len(read(one(data, 10))) == len(document["parameters"])


trees = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(alphabet="abyn01-: #'\"/*", max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abn-/", min_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(trees)
def test_yaml_reads_back(tree: Any) -> None:
    assert yaml_codec.load(_yaml(tree).encode()) == tree
