"""The wire format under all messages: varints, tags, lengths, and skipping what is not known.

Positions are checked against the end of the message being read, never only against the end of the input, so a nested
message cannot reach into its neighbour. The texts of errors are those of kube-apiserver's generated code.
"""

from __future__ import annotations

from functools import cache
from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
GROUP: Final = 3
END_GROUP: Final = 4
FIXED32: Final = 5

MAX_DEPTH: Final = 128
"""How deep messages may nest. Only JSON schemas nest without bound."""


class ProtobufError(ValueError):
    """Input that is no message of the wanted type."""


def truncated() -> ProtobufError:
    return ProtobufError("unexpected EOF")


_ONE_BYTE: Final = [bytes((value,)) for value in range(128)]


def encode_varint(value: int) -> bytes:
    """Base 128, least significant group first; negative numbers as their 64-bit two's complement."""
    if 0 <= value < 128:
        return _ONE_BYTE[value]
    if value < 0:
        value += 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_tag(number: int, wire_type: int) -> bytes:
    return encode_varint(number << 3 | wire_type)


@cache
def short_heads(tag: bytes) -> list[bytes]:
    """The tag followed by each one-byte varint, ready to be written."""
    return [tag + bytes((value,)) for value in range(128)]


def delimited(tag: bytes, value: bytes) -> bytes:
    """A length-delimited field."""
    return tag + encode_varint(len(value)) + value


def read_varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """The unsigned value and where it ends. Bits beyond 64 are lost, as in Go."""
    value = shift = 0
    while True:
        if shift >= 64:
            raise ProtobufError("proto: integer overflow")
        if position >= end:
            raise truncated()
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7


def read_length(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Where the bytes of a length-delimited field start and stop."""
    length, position = read_varint(data, position, end)
    if length >> 63:
        raise ProtobufError("proto: negative length found during unmarshaling")
    if length > end - position:
        raise truncated()
    return position, position + length


def skip(data: bytes, position: int, end: int) -> int:
    """The end of the field whose tag is at ``position``, groups with all they hold included."""
    depth = 0
    while position < end:
        tag, position = read_varint(data, position, end)
        wire_type = tag & 7
        if wire_type == VARINT:
            _, position = read_varint(data, position, end)
        elif wire_type == FIXED64:
            position += 8
        elif wire_type == BYTES:
            _, position = read_length(data, position, end)
        elif wire_type == GROUP:
            depth += 1
        elif wire_type == END_GROUP:
            if not depth:
                raise ProtobufError("proto: unexpected end of group")
            depth -= 1
        elif wire_type == FIXED32:
            position += 4
        else:
            raise ProtobufError(f"proto: illegal wireType {wire_type}")
        if position > end:
            raise truncated()
        if not depth:
            return position
    raise truncated()


def check_tag(name: str, tag: int) -> tuple[int, int]:
    """Number and wire type of a field of the named message."""
    number = tag >> 3 & 0xFFFF_FFFF
    if number >> 31:
        number -= 1 << 32
    if tag & 7 == 4:
        raise ProtobufError(f"proto: {name}: wiretype end group for non-group")
    if number <= 0:
        raise ProtobufError(f"proto: {name}: illegal tag {number} (wire type {tag})")
    return number, tag & 7
