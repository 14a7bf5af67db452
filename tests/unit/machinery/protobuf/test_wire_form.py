"""Bytes as kube-apiserver writes them, and what it says about bytes that it cannot read."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery import protobuf
from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.protobuf import ProtobufError
from pilothouse.machinery.protobuf.special import read_duration, read_int_or_string, read_quantity, read_time
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Scalar, Special, Struct

TEXT = Scalar("string")


def plain(name: str, kind: Any, number: int, *, pointer: bool = False) -> Field:
    field = Field(name, kind, number=number, pointer=pointer)
    field.omit_empty = True
    return field


INNER = Struct("test.v1.Inner", lambda: [plain("text", TEXT, 1)], go="v1.Inner")
THING = Struct(
    "test.v1.Thing",
    lambda: [
        plain("late", TEXT, 20, pointer=True),
        plain("count", Scalar("int32"), 2),
        plain("flag", Scalar("bool"), 3),
        plain("maybe", Scalar("int64"), 4, pointer=True),
        plain("inner", INNER, 5),
        plain("pointed", INNER, 6, pointer=True),
        plain("labels", MapOf(TEXT), 7),
        plain("numbers", ListOf(Scalar("int64")), 8),
        plain("ratio", Scalar("float64"), 9, pointer=True),
        plain("names", ListOf(TEXT, "v1.Names"), 10, pointer=True),
        plain("port", Special("IntOrString", "intstr.IntOrString"), 11, pointer=True),
        plain("size", Special("Quantity", "resource.Quantity"), 12, pointer=True),
        plain("at", Special("Time", "v1.Time"), 13, pointer=True),
        plain("raw", Special("RawExtension", "runtime.RawExtension"), 14, pointer=True),
        plain("data", Scalar("bytes"), 15),
        Inline(Struct("test.v1.Common", lambda: [plain("shared", TEXT, 1)], go="v1.Common"), 16),
    ],
    go="v1.Thing",
)
ALWAYS = {2: b"\x10\x00", 3: b"\x18\x00", 5: b"\x2a\x02\x0a\x00", 16: b"\x82\x01\x02\x0a\x00"}


def with_always(number: int, field: bytes) -> bytes:
    return b"".join(field for _, field in sorted({**ALWAYS, number: field}.items()))


CASES: list[tuple[dict[str, Any], int, bytes]] = [
    ({}, 2, b"\x10\x00"),
    ({"count": 300}, 2, b"\x10\xac\x02"),
    ({"count": -1}, 2, b"\x10" + b"\xff" * 9 + b"\x01"),
    ({"flag": True}, 3, b"\x18\x01"),
    ({"maybe": 0}, 4, b"\x20\x00"),
    ({"inner": {"text": "x"}}, 5, b"\x2a\x03\x0a\x01x"),
    ({"pointed": {}}, 6, b"\x32\x02\x0a\x00"),
    ({"labels": {"b": "2", "a": ""}}, 7, b"\x3a\x05\x0a\x01a\x12\x00\x3a\x06\x0a\x01b\x12\x012"),
    ({"numbers": [1, 0]}, 8, b"\x40\x01\x40\x00"),
    ({"ratio": 1.5}, 9, b"\x49\0\0\0\0\0\0\xf8\x3f"),
    ({"names": ["a", "b"]}, 10, b"\x52\x06\x0a\x01a\x0a\x01b"),
    ({"port": 80}, 11, b"\x5a\x06\x08\x00\x10\x50\x1a\x00"),
    ({"port": "web"}, 11, b"\x5a\x09\x08\x01\x10\x00\x1a\x03web"),
    ({"size": "1Gi"}, 12, b"\x62\x05\x0a\x031Gi"),
    ({"at": "1970-01-01T00:00:05Z"}, 13, b"\x6a\x04\x08\x05\x10\x00"),
    ({"raw": {"a": 1}}, 14, b'\x72\x09\x0a\x07{"a":1}'),
    ({"data": "AQI="}, 15, b"\x7a\x02\x01\x02"),
    ({"shared": "s"}, 16, b"\x82\x01\x03\x0a\x01s"),
    ({"late": "x" * 200}, 20, b"\xa2\x01\xc8\x01" + b"x" * 200),
]


@pytest.mark.parametrize(("value", "number", "field"), CASES)
def test_fields_in_order_of_numbers(value: dict[str, Any], number: int, field: bytes) -> None:
    assert protobuf.encode_message(THING, value) == with_always(number, field)


@pytest.mark.parametrize(("value", "number", "field"), CASES)
def test_fields_are_read_back(value: dict[str, Any], number: int, field: bytes) -> None:
    expected = {"inner": {}, **value}
    assert protobuf.decode_message(THING, with_always(number, field)) == expected
    assert protobuf.decode_message(THING, field) == expected


def test_packed_numbers_are_read() -> None:
    assert protobuf.decode_message(THING, b"\x42\x03\x01\x80\x01") == {"inner": {}, "numbers": [1, 128]}


def test_the_last_scalar_wins_and_messages_merge() -> None:
    twice = b"\x10\x05\x10\x00" + b"\x32\x03\x0a\x01x" + b"\x32\x00" + b"\x18\x01\x18\x07"
    assert protobuf.decode_message(THING, twice) == {"inner": {}, "pointed": {"text": "x"}, "flag": True}


def test_lists_and_maps_grow_over_pieces_of_a_message() -> None:
    spec = types.struct("core.v1.PodSpec")
    piece = protobuf.encode_message(types.struct("core.v1.Container"), {"name": "a"})
    container = b"\x12" + _varint(len(piece)) + piece
    pod = b"\x12\x00" + b"\x12" + _varint(len(container)) + container
    assert spec.fields["containers"].number == 2
    decoded = protobuf.decode_message(types.struct("core.v1.Pod"), pod)
    assert [item["name"] for item in decoded["spec"]["containers"]] == ["a"]


@pytest.mark.parametrize(
    "unknown",
    [b"\xf8\x07\x05", b"\xf9\x07" + bytes(8), b"\xfa\x07\x02ab", b"\xfd\x07" + bytes(4), b"\xfb\x07\x08\x01\xfc\x07"],
)
def test_unknown_fields_are_skipped(unknown: bytes) -> None:
    assert protobuf.decode_message(THING, unknown + b"\x10\x07") == {"inner": {}, "count": 7}


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x10", "unexpected EOF"),
        (b"\x10\x80", "unexpected EOF"),
        (b"\x2a\x05\x0a\x01x", "unexpected EOF"),
        (b"\x2a\x02\x0a\x01x", "unexpected EOF"),
        (b"\x49\x00", "unexpected EOF"),
        (b"\xf9\x07\x00", "unexpected EOF"),
        (b"\x10" + b"\xff" * 11, "proto: integer overflow"),
        (b"\x2a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x12\x00", "proto: wrong wireType = 2 for field Count"),
        (b"\x28\x00", "proto: wrong wireType = 0 for field Inner"),
        (b"\x14", "proto: Thing: wiretype end group for non-group"),
        (b"\x00\x00", "proto: Thing: illegal tag 0 (wire type 0)"),
        (b"\xff\x07", "proto: illegal wireType 7"),
        (b"\xfb\x07\x08", "unexpected EOF"),
        (b"\xa2\x01\x01\xff", "proto: string field contains invalid UTF-8"),
        (
            b"\x62\x03\x0a\x01x",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (b"\x5a\x02\x08\x02", "impossible IntOrString.Type"),
    ],
)
def test_errors(data: bytes, text: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        protobuf.decode_message(THING, data)
    assert str(caught.value) == text


def test_a_field_is_named_as_in_go() -> None:
    spec = types.struct("core.v1.PodSpec")
    with pytest.raises(ProtobufError, match=r"^proto: wrong wireType = 0 for field DeprecatedServiceAccount$"):
        protobuf.decode_message(spec, _varint(spec.fields["serviceAccount"].number << 3) + b"\x01")


def test_faults_of_times_are_told_in_the_order_of_their_fields() -> None:
    meta = types.struct("meta.v1.ObjectMeta")
    wrong = _varint(meta.fields["creationTimestamp"].number << 3 | 2) + b"\x04\x0a\x00\x12\x00"
    with pytest.raises(ProtobufError, match=r"^proto: wrong wireType = 2 for field Seconds$"):
        protobuf.decode_message(meta, wrong)


def test_nesting_is_bounded() -> None:
    schema = types.struct("apiextensions.v1.JSONSchemaProps")
    number = schema.fields["not"].number
    data = b""
    for _ in range(5000):
        data = bytes((number << 3 & 0x7F | 0x80 | 2, number >> 4)) + _varint(len(data)) + data
    with pytest.raises(ProtobufError, match="exceeded maximum recursion depth"):
        protobuf.decode_message(schema, data)


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes((value & 127 | 128,))
        value >>= 7
    return out + bytes((value,))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x0a\x05", "unexpected EOF"),
        (b"k8s\0\x0a\x02\x0a\x05\x00\x00", "unexpected EOF"),
        (b"k8s\0\x08\x00", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\0\x0a\x03\x0a\x01\xff", "proto: string field contains invalid UTF-8"),
    ],
)
def test_envelope_errors(data: bytes, text: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        protobuf.decode(data)
    assert str(caught.value) == text


def test_envelope() -> None:
    gvk = GroupVersionKind("", "v1", "Thing")
    data = protobuf.wrap(gvk, b"raw")
    assert data == b"k8s\0\x0a\x0b\x0a\x02v1\x12\x05Thing\x12\x03raw\x1a\x00\x22\x00"
    assert protobuf.decode(data) == protobuf.Envelope("v1", "Thing", b"raw")


def test_a_list_of_ready_items_is_the_list() -> None:
    pods = types.struct("core.v1.PodList")
    gvk = GroupVersionKind("", "v1", "PodList")
    value = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": n}} for n in ("a", "b" * 200)]}
    metadata = protobuf.encode_message(types.struct("meta.v1.ListMeta"), value["metadata"])  # type: ignore[arg-type]
    items = [protobuf.encode_message(types.struct("core.v1.Pod"), item) for item in value["items"]]  # type: ignore[arg-type]
    beginning, pieces, end, size = protobuf.list_parts(gvk, metadata, items)
    assert size == len(b"".join(pieces))
    assert b"".join((beginning, *pieces, end)) == protobuf.encode(pods, value, gvk)
    assert {id(item) for item in items} <= {id(piece) for piece in pieces}, "no message is copied"


def test_watch_event_frame() -> None:
    assert protobuf.encode_watch_event("ADDED", b"k8s\0x") == (
        b"\x00\x00\x00\x10" + b"\x0a\x05ADDED" + b"\x12\x07" + b"\x0a\x05k8s\0x"
    )


def test_table_has_no_protobuf() -> None:
    assert not protobuf.has_protobuf(types.struct("meta.v1.Table"))
    assert protobuf.has_protobuf(types.struct("meta.v1.PartialObjectMetadata"))


def test_a_message_is_read_partly_by_paths() -> None:
    obj = {
        "late": "x" * 300,
        "count": 300,
        "flag": True,
        "inner": {"text": "a"},
        "pointed": {"text": "b"},
        "labels": {"k": "v"},
        "ratio": 1.5,
    }
    message = protobuf.encode_message(THING, obj)
    assert protobuf.decode_partly(THING, message, frozenset({"late"})) == {"late": "x" * 300}
    read = protobuf.decode_partly(THING, message, frozenset({"inner.text", "labels", "count"}))
    assert {name: read[name] for name in ("inner", "labels", "count")} == {
        "inner": {"text": "a"},
        "labels": {"k": "v"},
        "count": 300,
    }
    assert "late" not in read and "ratio" not in read and "pointed" not in read
    for cut in (1, 100, len(message) - 1):
        with pytest.raises(ProtobufError):
            protobuf.decode_partly(THING, message[:-cut], frozenset({"labels"}))


@pytest.mark.parametrize(
    ("read", "data", "why"),
    [
        (read_time, b"t7240", "proto: Timestamp: wiretype end group for non-group"),
        (read_quantity, b"\x0c", "proto: Quantity: wiretype end group for non-group"),
        (read_int_or_string, b"\x00\x00", "proto: IntOrString: illegal tag 0 (wire type 0)"),
        (read_duration, b"\x07", "proto: Duration: illegal tag 0 (wire type 7)"),
    ],
)
def test_what_is_one_thing_in_json_has_a_name_as_a_message(read: Any, data: bytes, why: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        read(data)
    assert str(caught.value) == why
