"""How custom resources merge."""

from __future__ import annotations

from pilothouse.apis.apiextensions.schema.nodes import Node
from pilothouse.apis.apiextensions.schema.shapes import object_shape
from pilothouse.machinery.structured.shapes import DEDUCED


def shape_of(**properties):
    shape = object_shape(Node({"type": "object", "properties": properties}))
    assert shape.map is not None
    return shape.map.fields


def test_scalars_lists_and_maps():
    fields = shape_of(
        s={"type": "string"},
        day={"type": "string", "format": "date"},
        bytes={"type": "string", "format": "byte"},
        n={"type": "integer"},
        p={"x-kubernetes-int-or-string": True},
        atomic={"type": "array", "items": {"type": "string"}},
        set={"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        map={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string", "default": "x"}}},
        },
        whole={"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
        free={"x-kubernetes-preserve-unknown-fields": True},
        loose={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    )
    assert (fields["s"].scalar, fields["n"].scalar, fields["p"].scalar) == ("string", "numeric", "untyped")
    assert fields["p"].items is not None and fields["p"].map is not None
    assert (fields["day"].scalar, fields["bytes"].scalar) == ("untyped", "string")
    assert fields["atomic"].items.atomic
    assert not fields["set"].items.atomic and fields["set"].items.keys == ()
    assert fields["map"].items.key_fields == (("k", "x"),)
    assert fields["whole"].map.atomic
    assert fields["free"] is DEDUCED
    assert (fields["loose"].scalar, fields["loose"].items) == ("", None)
    assert fields["loose"].map.field("a") is DEDUCED
    assert {"apiVersion", "kind", "metadata"} <= fields.keys()


def test_unknown_fields_are_open_only_where_kept():
    closed = object_shape(Node({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {}}}}}))
    assert closed.map.field("other") is None
    assert closed.map.fields["spec"].map.field("b") is None
    kept = object_shape(Node({"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    assert kept.map.field("other") is DEDUCED
