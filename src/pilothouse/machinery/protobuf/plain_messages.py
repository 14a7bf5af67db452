"""Protobuf messages of plug-in services, which have no schema here: key management, external signers of tokens.

Fields are bytes (or messages as bytes), text, numbers, or a map from text to bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.machinery.protobuf.wire import BYTES, VARINT, encode_varint

Value = bytes | str | int | Mapping[str, bytes]


class MalformedMessage(ValueError):
    """Bytes that are no message."""


def encode(fields: Mapping[int, Value]) -> bytes:
    """The message with these fields by number; empty ones are left out."""
    out = bytearray()
    for number, value in fields.items():
        if not value:
            continue
        if isinstance(value, int):
            out += encode_varint(number << 3 | VARINT) + encode_varint(value)
        elif isinstance(value, Mapping):
            for key in sorted(value):
                out += _piece(number, _piece(1, key.encode()) + _piece(2, value[key]))
        else:
            out += _piece(number, value.encode() if isinstance(value, str) else value)
    return bytes(out)


def _piece(number: int, data: bytes) -> bytes:
    return encode_varint(number << 3 | BYTES) + encode_varint(len(data)) + data


def decode(data: bytes) -> dict[int, list[bytes | int]]:
    """All values by field number, in order. Raises MalformedMessage."""
    found: dict[int, list[bytes | int]] = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0 or kind not in (VARINT, BYTES):
            raise MalformedMessage("unexpected field")
        value, at = _varint(data, at)
        if kind == VARINT:
            found.setdefault(number, []).append(value)
            continue
        if at + value > len(data):
            raise MalformedMessage("unexpected EOF")
        found.setdefault(number, []).append(data[at : at + value])
        at += value
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise MalformedMessage("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def data_of(message: Mapping[int, list[bytes | int]], number: int) -> bytes:
    """The last bytes of a field; empty without any."""
    values = message.get(number)
    last = values[-1] if values else b""
    return last if isinstance(last, bytes) else b""


def text_of(message: Mapping[int, list[bytes | int]], number: int) -> str:
    """The last text of a field; empty without any."""
    return data_of(message, number).decode("utf-8", "replace")


def number_of(message: Mapping[int, list[bytes | int]], number: int) -> int:
    """The last number of a field; 0 without any."""
    values = message.get(number)
    last = values[-1] if values else 0
    return last if isinstance(last, int) else 0


def map_of(message: Mapping[int, list[bytes | int]], number: int) -> dict[str, bytes]:
    """A map field."""
    entries = [decode(entry) for entry in message.get(number, ()) if isinstance(entry, bytes)]
    return {text_of(entry, 1): data_of(entry, 2) for entry in entries}
