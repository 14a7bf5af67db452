"""Values that are one thing in JSON and a message of their own in protobuf: times, quantities, raw JSON and the like.

Each has a writer from its JSON form to the message's bytes, and a reader back to the canonical JSON form. Times and
quantities repeat a lot within a list, so their writers and readers remember recent ones, as long as they are short.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson

from pilothouse.machinery import quantity, times
from pilothouse.machinery.protobuf.wire import (
    ProtobufError,
    check_tag,
    delimited,
    encode_varint,
    read_length,
    read_varint,
    skip,
)

Short = TypeVar("Short", str | None, bytes)
Result = TypeVar("Result")


def _remember(convert: Callable[[Short], Result]) -> Callable[[Short], Result]:
    """Keep recent results. What is longer than any honest value is converted each time and never kept."""
    remembered = lru_cache(4096)(convert)

    def call(value: Short) -> Result:
        return remembered(value) if value is None or len(value) < 40 else convert(value)

    return call


ZERO_QUANTITY: Final = b"\n\x010"
ZERO_INT_OR_STRING: Final = b"\x08\x00\x10\x00\x1a\x00"
ZERO_DURATION: Final = b"\x08\x00"


def signed(value: int, bits: int) -> int:
    """The low bits of an unsigned number, read as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_fields(name: str, data: bytes) -> dict[int, Any]:
    """A small message of that name as numbers and bytes by field number; the last of each wins."""
    fields: dict[int, Any] = {}
    position, end = 0, len(data)
    while position < end:
        tag, after = read_varint(data, position, end)
        number, wire_type = check_tag(name, tag)
        if wire_type == 0:
            fields[number], position = read_varint(data, after, end)
        elif wire_type == 2:
            start, position = read_length(data, after, end)
            fields[number] = data[start:position]
        else:
            position = skip(data, position, end)
    return fields


def _number(fields: dict[int, Any], number: int, name: str) -> int:
    value = fields.get(number, 0)
    if not isinstance(value, int):
        raise ProtobufError(f"proto: wrong wireType = 2 for field {name}")
    return value


def _bytes(fields: dict[int, Any], number: int, name: str) -> bytes:
    value = fields.get(number, b"")
    if not isinstance(value, bytes):
        raise ProtobufError(f"proto: wrong wireType = 0 for field {name}")
    return value


@_remember
def write_time(text: str | None) -> bytes:
    if text is None:
        return b""
    return b"\x08" + encode_varint(times.parse_time(text).seconds) + b"\x10\x00"


@_remember
def write_micro_time(text: str | None) -> bytes:
    if text is None:
        return b""
    instant = times.parse_micro_time(text)
    return b"\x08" + encode_varint(instant.seconds) + b"\x10" + encode_varint(instant.nanos)


# Beyond these the civil year has more than four digits, which no JSON reader takes.
_FIRST_SECOND: Final = times.ZERO_INSTANT.seconds
_LAST_SECOND: Final = 253_402_300_799


def _seconds(fields: dict[int, Any]) -> int:
    seconds = signed(_number(fields, 1, "Seconds"), 64)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise ProtobufError("Time.MarshalJSON: year outside of range [0,9999]")
    return seconds


@_remember
def read_time(data: bytes) -> str | None:
    fields = read_fields("Timestamp", data)
    _number(fields, 1, "Seconds")
    _number(fields, 2, "Nanos")
    seconds = _seconds(fields)
    return times.format_time(times.Instant(seconds)) if data and seconds != _FIRST_SECOND else None


@_remember
def read_micro_time(data: bytes) -> str | None:
    fields = read_fields("Timestamp", data)
    _number(fields, 1, "Seconds")
    micros = int(signed(_number(fields, 2, "Nanos"), 32) / 1000)
    instant = times.Instant(_seconds(fields) + micros // 1_000_000, micros % 1_000_000 * 1000)
    if not data or instant == times.ZERO_INSTANT:
        return None
    return times.format_micro_time(instant)


@_remember
def write_quantity(text: str | None) -> bytes:
    return delimited(b"\n", (text or "0").encode())


@_remember
def read_quantity(data: bytes) -> str:
    text = _bytes(read_fields("Quantity", data), 1, "String_").decode()
    try:
        return quantity.canonicalize(text) if text else "0"
    except ValueError as error:
        raise ProtobufError(str(error)) from None


def write_int_or_string(value: int | str) -> bytes:
    if value.__class__ is str:
        return b"\x08\x01\x10\x00" + delimited(b"\x1a", str(value).encode())
    return b"\x08\x00\x10" + encode_varint(int(value)) + b"\x1a\x00"


def read_int_or_string(data: bytes) -> int | str:
    fields = read_fields("IntOrString", data)
    kind, text = signed(_number(fields, 1, "Type"), 64), _bytes(fields, 3, "StrVal").decode()
    value = signed(_number(fields, 2, "IntVal"), 32)
    if kind not in (0, 1):
        raise ProtobufError("impossible IntOrString.Type")
    return text if kind else value


def write_duration(text: str) -> bytes:
    return b"\x08" + encode_varint(times.parse_duration(text))


def read_duration(data: bytes) -> str:
    return times.format_duration(signed(_number(read_fields("Duration", data), 1, "Duration"), 64))


def write_raw(value: Any) -> bytes:
    return b"" if value is None else delimited(b"\n", orjson.dumps(value))


def read_raw(data: bytes) -> Any:
    raw = _bytes(read_fields("RawExtension", data), 1, "Raw")
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"raw value is not JSON: {error}") from None


def read_strings(data: bytes) -> list[str]:
    """A named list of strings: a message with one repeated field."""
    items: list[str] = []
    position, end = 0, len(data)
    while position < end:
        tag, after = read_varint(data, position, end)
        if tag == 0x0A:
            start, position = read_length(data, after, end)
            items.append(data[start:position].decode())
        elif tag >> 3 == 1:
            raise ProtobufError(f"proto: wrong wireType = {tag & 7} for field Items")
        else:
            position = skip(data, position, end)
    return items


def write_strings(items: list[str] | None) -> bytes:
    return b"".join(delimited(b"\n", item.encode()) for item in items or ())


WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "Time": write_time,
    "MicroTime": write_micro_time,
    "Quantity": write_quantity,
    "IntOrString": write_int_or_string,
    "Duration": write_duration,
    "RawExtension": write_raw,
    "FieldsV1": write_raw,
    "JSON": write_raw,
}

READERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "Time": read_time,
    "MicroTime": read_micro_time,
    "Quantity": read_quantity,
    "IntOrString": read_int_or_string,
    "Duration": read_duration,
    "RawExtension": read_raw,
    "FieldsV1": read_raw,
    "JSON": read_raw,
}

ZEROS: Final = {"Quantity": ZERO_QUANTITY, "IntOrString": ZERO_INT_OR_STRING, "Duration": ZERO_DURATION}
"""What is written for a value that is not set; nothing for the others."""
