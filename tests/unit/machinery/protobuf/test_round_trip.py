"""Objects of every built-in type survive the way through protobuf unchanged."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.machinery import protobuf
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.schema import decoding
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type

OBJECTS = [
    name
    for name in types.names()
    if types.struct(name).is_object and protobuf.has_protobuf(types.struct(name)) and types.struct(name).fields
]
GVK = GroupVersionKind("group.example", "v1", "Thing")
TEXTS = ["", "a", "name-1", "ä€😀", "x" * 130, "y" * 20_000, "with\nbreak\0"]
SPECIAL = {
    "Quantity": ["0", "100m", "1Gi", "1500", "-2"],
    "Time": ["2024-05-01T12:00:00Z", "1969-12-31T23:59:59Z", "0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"],
    "MicroTime": ["2024-05-01T12:00:00.123456Z", "1969-12-31T23:59:59.000001Z"],
    "Duration": ["0s", "1h0m0.5s", "-3ms"],
    "IntOrString": [0, 80, -1, 2**31 - 1, "", "http", "10%"],
    "RawExtension": [{"a": [1, None]}, "text", 7],
    "FieldsV1": [{"f:metadata": {".": {}}}, {}],
    "JSON": [{"a": 1}, [1.5], "x", False, 0],
    "SchemaOrBool": [True, False, {"type": "string"}],
    "SchemaOrArray": [{"type": "integer"}, [{"type": "string"}, {"format": "date"}]],
    "SchemaOrStringArray": [["a", "b"], {"required": ["x"]}],
}
NUMBERS = {"int32": [0, 1, -1, 127, 128, 2**31 - 1, -(2**31)], "int64": [0, 5, -5, 2**63 - 1, -(2**63)]}


class Maker:
    """Makes JSON values that fit a schema; ``chance`` is how likely an optional field is there."""

    def __init__(self, rng: random.Random, chance: float) -> None:
        self.rng = rng
        self.chance = chance

    def struct(self, struct: Struct, depth: int = 0) -> dict[str, Any]:
        chance = self.chance if depth < 5 else 0.1
        return {
            field.name: self.value(field.type, depth)
            for field in struct.fields.values()
            if depth < 9 and self.rng.random() < chance and not is_type_meta(field)
        }

    def value(self, kind: Type, depth: int) -> Any:
        if isinstance(kind, Struct):
            return self.struct(kind, depth + 1)
        if isinstance(kind, ListOf):
            return [self.value(kind.item, depth) for _ in range(self.rng.choice((1, 1, 2)))]
        if isinstance(kind, MapOf):
            return {self.rng.choice(TEXTS[:5]): self.value(kind.value, depth) for _ in range(self.rng.choice((1, 3)))}
        if isinstance(kind, Special):
            return self.rng.choice(SPECIAL[kind.kind])
        assert isinstance(kind, Scalar)
        return self.scalar(kind.kind)

    def scalar(self, kind: str) -> Any:
        if kind == "string":
            return self.rng.choice(TEXTS)
        if kind == "bool":
            return self.rng.random() < 0.5
        if kind == "float64":
            return self.rng.choice([0, 1.5, -2, 1e300])
        if kind == "bytes":
            return base64.b64encode(self.rng.randbytes(self.rng.choice((1, 2, 200)))).decode()
        return self.rng.choice(NUMBERS[kind])


def is_type_meta(field: Field) -> bool:
    return field.name in ("kind", "apiVersion") and not field.number


def check(struct: Struct, value: dict[str, Any]) -> None:
    normal, unknown = decoding.decode(struct, value)
    assert not unknown
    data = protobuf.encode(struct, normal, GVK)
    envelope = protobuf.decode(data)
    assert (envelope.api_version, envelope.kind) == ("group.example/v1", "Thing")
    again = protobuf.decode_message(struct, envelope.raw)
    assert again == normal
    assert protobuf.encode_message(struct, again) == envelope.raw


@pytest.mark.parametrize("name", OBJECTS)
def test_every_type(name: str) -> None:
    struct = types.struct(name)
    for chance in (0.0, 0.3, 0.6):
        check(struct, Maker(random.Random(f"{name} {chance}"), chance).struct(struct))


@settings(max_examples=80)
@given(st.sampled_from(OBJECTS), st.integers(), st.sampled_from([0.1, 0.4, 0.7]))
def test_any_object(name: str, seed: int, chance: float) -> None:
    struct = types.struct(name)
    check(struct, Maker(random.Random(seed), chance).struct(struct))


@settings(max_examples=80)
@given(
    st.sampled_from(["core.v1.Pod", "core.v1.Secret", "apiextensions.v1.CustomResourceDefinition", "meta.v1.Status"]),
    st.integers(),
    st.integers(0, 6),
)
def test_mutations_raise_nothing_else(name: str, seed: int, count: int) -> None:
    struct = types.struct(name)
    rng = random.Random(seed)
    normal, _ = decoding.decode(struct, Maker(rng, 0.4).struct(struct))
    data = bytearray(protobuf.encode(struct, normal, GVK))
    for _ in range(count):
        at = rng.randrange(4, len(data))
        what = rng.randrange(3)
        if what == 0:
            data[at] = rng.randrange(256)
        elif what == 1:
            del data[at : at + rng.randrange(4)]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 4))
    try:
        protobuf.decode_message(struct, protobuf.decode(bytes(data)).raw)
    except protobuf.ProtobufError as error:
        assert str(error)


@settings(max_examples=120)
@given(st.binary(max_size=200))
def test_any_bytes_raise_nothing_else(data: bytes) -> None:
    for name in ("core.v1.Pod", "apiextensions.v1.JSONSchemaProps", "meta.v1.ObjectMeta"):
        try:
            protobuf.decode_message(types.struct(name), data)
        except protobuf.ProtobufError as error:
            assert str(error)


def test_what_is_remembered_is_nobodys() -> None:
    """Short messages are read once; whoever changes what was read changes nothing for others."""
    struct = types.struct_of("v1", "Pod")
    port = {"containerPort": 80, "protocol": "TCP"}
    container = {"name": "c", "image": "i", "ports": [port], "env": [{"name": "a", "value": "b"}], "resources": {}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "tolerations": [{"key": "k"}]}}
    message = protobuf.encode_message(struct, pod)
    wanted = protobuf.decode_message(struct, message)
    for _ in range(4):
        read = protobuf.decode_message(struct, message)
        assert read == wanted
        read["spec"]["tolerations"][0]["key"] = "other"
        read["spec"]["containers"][0]["ports"].append({})
        read["spec"]["containers"][0]["env"][0].clear()
        read["metadata"]["labels"] = {}


def test_envelopes_are_opened_by_their_kind() -> None:
    struct = types.struct_of("v1", "ConfigMap")
    gvk = GroupVersionKind("", "v1", "ConfigMap")
    for text in ("", "x" * 200, "y" * 20_000):
        value = protobuf.encode(struct, {"metadata": {"name": "c"}, "data": {"k": text}}, gvk)
        assert protobuf.unwrap(gvk, value) == protobuf.decode(value).raw
        assert protobuf.unwrap(GroupVersionKind("", "v1", "Secret"), value) is None
        for damaged in (value[:-1], value + b"\x1a\x00\x22\x00", value[: len(value) // 2]):
            assert protobuf.unwrap(gvk, damaged) is None
