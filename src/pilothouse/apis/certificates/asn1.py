"""Why bytes are no signing request, in the words of kube-apiserver's ASN.1 reader.

The library that reads requests here only says that it cannot. This looks at the outermost tags, which is where what is
no request at all differs from one: a request is a sequence that begins with a sequence that begins with a number.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_SEQUENCE: Final = 16
_INTEGER: Final = 2
_LARGEST: Final = 1 << 23
_PARAMETERS: Final = (
    "{optional:false explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 "
    "timeType:0 set:false omitEmpty:false}"
)
_EXPECTED: Final = (("certificateRequest", _SEQUENCE), ("tbsCertificateRequest", _SEQUENCE), ("int", _INTEGER))
_SYNTAX: Final = "asn1: syntax error: "
_STRUCTURE: Final = "asn1: structure error: "


class _ASN1Error(Exception):
    pass


class _Tag(NamedTuple):
    kind: int
    number: int
    length: int
    compound: bool

    def __str__(self) -> str:
        compound = "true" if self.compound else "false"
        return f"{{class:{self.kind} tag:{self.number} length:{self.length} isCompound:{compound}}}"


def describe_error(data: bytes) -> str:
    """What keeps the bytes from being a signing request."""
    content = data
    try:
        for name, wanted in _EXPECTED:
            content = _enter(content, name, wanted)
    except _ASN1Error as error:
        return str(error)
    tag, at = _read_tag(data)
    return _SYNTAX + "trailing data" if at + tag.length < len(data) else _STRUCTURE + "tags don't match"


def _enter(data: bytes, name: str, wanted: int) -> bytes:
    """The content of the first element, which has to be of a kind. Raises _ASN1Error."""
    if not data:
        raise _ASN1Error(_SYNTAX + "sequence truncated")
    tag, at = _read_tag(data)
    if (tag.kind, tag.number, tag.compound) != (0, wanted, wanted == _SEQUENCE):
        raise _ASN1Error(f"{_STRUCTURE}tags don't match ({wanted} vs {tag}) {_PARAMETERS} {name} @{at}")
    if at + tag.length > len(data):
        raise _ASN1Error(_SYNTAX + "data truncated")
    return data[at : at + tag.length]


def _read_tag(data: bytes) -> tuple[_Tag, int]:
    first, at = data[0], 1
    number = first & 0x1F
    if number == 0x1F:
        number, at = _read_base128(data, at)
        if number < 0x1F:
            raise _ASN1Error(_SYNTAX + "non-minimal tag")
    length, at = _read_length(data, at)
    return _Tag(first >> 6, number, length, bool(first & 0x20)), at


def _read_base128(data: bytes, at: int) -> tuple[int, int]:
    result = 0
    for count in range(5):
        if at >= len(data):
            raise _ASN1Error(_SYNTAX + "truncated base 128 integer")
        byte = data[at]
        at += 1
        if count == 0 and byte == 0x80:
            raise _ASN1Error(_SYNTAX + "integer is not minimally encoded")
        result = result << 7 | byte & 0x7F
        if byte < 0x80:
            if result > 0x7FFFFFFF:
                break
            return result, at
    raise _ASN1Error(_STRUCTURE + "base 128 integer too large")


def _read_length(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data):
        raise _ASN1Error(_SYNTAX + "truncated tag or length")
    first, at = data[at], at + 1
    if first < 0x80:
        return first, at
    if first == 0x80:
        raise _ASN1Error(_SYNTAX + "indefinite length found (not DER)")
    length = 0
    for _ in range(first & 0x7F):
        if at >= len(data):
            raise _ASN1Error(_SYNTAX + "truncated tag or length")
        if length >= _LARGEST:
            raise _ASN1Error(_STRUCTURE + "length too large")
        length = length << 8 | data[at]
        at += 1
        if length == 0:
            raise _ASN1Error(_STRUCTURE + "superfluous leading zeros in length")
    if length < 0x80:
        raise _ASN1Error(_STRUCTURE + "non-minimal length")
    return length, at
