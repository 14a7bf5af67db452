"""Any structural schema and any object: cleaning and defaulting settle at once, and what is accepted reads back."""

from __future__ import annotations

import copy

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiextensions.serving.codec import CustomCodec
from pilothouse.apiextensions.serving.conversion import Versions
from pilothouse.apis.apiextensions.custom_resource_definition.structural import structural_errors, unsupported
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.machinery.field_errors import Path

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text("xy", max_size=2)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES, v, max_size=3), max_leaves=8)
LEAVES = st.builds(
    lambda kind, nullable: {**kind, "nullable": nullable},
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "default": "d"},
            {"type": "integer", "maximum": 5},
            {"type": "integer", "default": 1},
            {"type": "boolean"},
            {"x-kubernetes-int-or-string": True},
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            {"x-kubernetes-preserve-unknown-fields": True},
        ]
    ),
    st.booleans(),
)


def nest(inner):
    objects = st.dictionaries(NAMES, inner, max_size=3).map(lambda fields: {"type": "object", "properties": fields})
    return (
        objects
        | objects.map(lambda schema: {**schema, "default": {}})
        | objects.map(lambda schema: {**schema, "x-kubernetes-preserve-unknown-fields": True})
        | inner.map(lambda items: {"type": "array", "items": items})
        | inner.map(lambda values: {"type": "object", "additionalProperties": values})
    )


FIELDS = st.dictionaries(st.sampled_from(["spec", "status"]), st.recursive(LEAVES, nest, max_leaves=6), max_size=2)
SCHEMAS = FIELDS.map(lambda fields: {"type": "object", "properties": fields})
OBJECTS = st.dictionaries(st.sampled_from(["spec", "status", "other"]), VALUES, max_size=3)


@given(SCHEMAS, OBJECTS)
def test_cleaning_and_defaulting_settle(schema, obj):
    assert not unsupported(schema)
    assert structural_errors(schema, Path("x")) == []
    compiled = ObjectSchema(schema)
    compiled.clean(obj)
    compiled.default(obj)
    settled = copy.deepcopy(obj)
    assert compiled.clean(obj) == []
    compiled.default(obj)
    assert obj == settled


@given(SCHEMAS, OBJECTS)
def test_what_is_accepted_reads_back(schema, obj):
    compiled = ObjectSchema(schema)
    obj |= {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a", "uid": "u" * 36, "generation": 1}}
    compiled.clean(obj)
    compiled.default(obj)
    if compiled.errors(obj):
        return
    codec = CustomCodec(Versions("example.com", "Box", "v1", {"v1": compiled}, None), "v1", None)
    written = codec.entry_of("/k", obj, codec.encode(obj), 5)
    read = codec.entry("/k", codec.to_stored(codec.encode(obj)), 5)
    assert orjson.loads(written.data) == orjson.loads(read.data)
    assert {key: value for key, value in orjson.loads(read.data).items() if key != "metadata"} == {
        key: value for key, value in obj.items() if key != "metadata"
    }
