"""Schemas of definitions are read as strictly where they hold each other as where they are fields of one."""

from typing import Any

import pytest

from pilothouse.apis.types import struct
from pilothouse.machinery.schema.decoding import DecodeError, decode

SCHEMA = struct("apiextensions.v1.JSONSchemaProps")


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"items": {"type": "string", "unheard": 1}}, {"items": {"type": "string"}}),
        ({"items": [{"unheard": 1}, None]}, {"items": [{}, {}]}),
        ({"items": 5}, {}),
        ({"items": []}, {}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"additionalProperties": {"maximum": 2.0}}, {"additionalProperties": {"maximum": 2}}),
        ({"dependencies": {"a": ["b"], "c": {"unheard": 1}}}, {"dependencies": {"a": ["b"], "c": {}}}),
        ({"dependencies": {"a": 5}}, {"dependencies": {"a": None}}),
        ({"default": {"a": [1.0, 2.5]}, "enum": [3.0]}, {"default": {"a": [1, 2.5]}, "enum": [3]}),
    ],
)
def test_values(schema: dict[str, Any], wanted: dict[str, Any]) -> None:
    # What is unknown inside a schema that another one holds is dropped without a word.
    assert decode(SCHEMA, schema) == (wanted, False)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"items": {"items": {"nullable": 5}}},
         "json: cannot unmarshal number into Go struct field JSONSchemaProps.items.items.nullable of type bool"),
        ({"items": [{"type": 5}]},
         "json: cannot unmarshal number into Go struct field JSONSchemaProps.items.type of type string"),
        ({"additionalProperties": {"type": []}},
         "json: cannot unmarshal array into Go struct field JSONSchemaProps.additionalProperties.type of type string"),
        ({"additionalProperties": 5}, "boolean or JSON schema expected"),
    ],
)  # fmt: skip
def test_errors(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(SCHEMA, schema)
    assert str(caught.value) == message
