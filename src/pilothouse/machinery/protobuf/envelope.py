"""What stands around messages: the prefix and Unknown message of every object, lists of ready items, watch frames.

An object on the wire is ``k8s`` and a zero byte, then runtime.Unknown: TypeMeta (apiVersion, kind), the object's own
message, and two empty strings. A watch sends WatchEvent messages, each behind its length in four bytes; the object in
an event has its envelope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.protobuf.encoding import encode_message
from pilothouse.machinery.protobuf.wire import (
    BYTES,
    ProtobufError,
    check_tag,
    delimited,
    encode_varint,
    read_length,
    read_varint,
    skip,
)
from pilothouse.machinery.schema.types import Struct

PREFIX: Final = b"k8s\x00"
_TAIL: Final = b"\x1a\x00\x22\x00"
_UNKNOWN: Final = {1: "TypeMeta", 2: "Raw", 3: "ContentEncoding", 4: "ContentType"}
_TYPE_META: Final = {1: "APIVersion", 2: "Kind"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an encoded object says about itself, and its message."""

    api_version: str
    kind: str
    raw: bytes
    content_encoding: str = ""
    content_type: str = ""


@lru_cache(2048)
def _head(api_version: str, kind: str) -> bytes:
    meta = delimited(b"\n", api_version.encode()) + delimited(b"\x12", kind.encode())
    return PREFIX + delimited(b"\n", meta) + b"\x12"


def wrap(gvk: GroupVersionKind, message: bytes) -> bytes:
    """Put an encoded message into the envelope of its kind."""
    return b"".join((_head(str(gvk.group_version), gvk.kind), encode_varint(len(message)), message, _TAIL))


def encode(struct: Struct, value: dict[str, Any], gvk: GroupVersionKind) -> bytes:
    """An object in its envelope."""
    return wrap(gvk, encode_message(struct, value))


def list_parts(gvk: GroupVersionKind, metadata: bytes, items: Iterable[bytes]) -> tuple[bytes, list[bytes], bytes, int]:
    """A list in its envelope, from the messages of its metadata and items: its beginning, the items, its end.

    And how long the items are together, which takes a while to find out where there are very many.

    Each item is two pieces, its length and the message as it is: others may be sending the same ones.
    """
    first = delimited(b"\n", metadata)
    pieces: list[bytes] = []
    heads: dict[int, bytes] = {}
    for item in items:
        size = len(item)
        head = heads.get(size)
        if head is None:
            head = heads[size] = b"\x12" + encode_varint(size)
        pieces += (head, item)
    size = sum(map(len, pieces))
    return _head(str(gvk.group_version), gvk.kind) + encode_varint(len(first) + size) + first, pieces, _TAIL, size


def frame(message: bytes) -> bytes:
    """One frame of a stream."""
    return len(message).to_bytes(4, "big") + message


def encode_watch_event(event_type: str, enveloped: bytes) -> bytes:
    """The frame of a watch event about an object in its envelope."""
    return frame(delimited(b"\n", event_type.encode()) + delimited(b"\x12", delimited(b"\n", enveloped)))


def unwrap(gvk: GroupVersionKind, data: bytes) -> bytes | None:
    """The message of an object of this kind as ``wrap`` has wrapped it; None for all others."""
    head = _head(str(gvk.group_version), gvk.kind)
    if not data.startswith(head) or not data.endswith(_TAIL):
        return None
    length, start = read_varint(data, len(head), len(data))
    return data[start : start + length] if start + length + len(_TAIL) == len(data) else None


def decode(data: bytes) -> Envelope:
    """Open the envelope of an object. What is in it is read by ``decode_message``."""
    if not data:
        raise ProtobufError("empty data")
    if not data.startswith(PREFIX):
        raise ProtobufError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    if len(data) == len(PREFIX):
        raise ProtobufError("empty body")
    try:
        meta = dict.fromkeys(_TYPE_META, b"")
        fields = dict.fromkeys(_UNKNOWN, b"")
        for number, value in _read_fields("Unknown", _UNKNOWN, data, len(PREFIX)):
            fields[number] = value
            if number == 1:  # read at once: what is wrong in it is told before what is wrong behind it
                meta.update(_read_fields("TypeMeta", _TYPE_META, value, 0))
        return Envelope(meta[1].decode(), meta[2].decode(), fields[2], fields[3].decode(), fields[4].decode())
    except UnicodeDecodeError:
        raise ProtobufError("proto: string field contains invalid UTF-8") from None


def _read_fields(name: str, known: dict[int, str], data: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    """The known fields of a message, which are all length-delimited, in their order."""
    end = len(data)
    while position < end:
        tag, after = read_varint(data, position, end)
        number, wire_type = check_tag(name, tag)
        if number not in known:
            position = skip(data, position, end)
            continue
        if wire_type != BYTES:
            raise ProtobufError(f"proto: wrong wireType = {wire_type} for field {known[number]}")
        start, position = read_length(data, after, end)
        yield number, data[start:position]
