"""How much work a body is: by its length, or by how many values it has where these are very short.

16 KB of usual JSON are some six hundred values. The same 16 KB may be five thousand empty ones (``{},``), and each of
them is decoded, defaulted, tracked and refused with a message or two of its own.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.workers import LONG

_USUAL_LENGTH: Final = 24
"""What a value and its name take of usual JSON."""
_TOO_SHORT: Final = LONG // _USUAL_LENGTH
"""A body of fewer bytes is never long, whatever it consists of."""

_PROTOBUF: Final = b"k8s\0"
_SHORT_LENGTHS: Final = (b"\0", b"\1", b"\2")
"""How protobuf tells the length of values of up to two bytes."""


def weight_of(body: bytes) -> int:
    """What to compare with ``LONG``: the bytes of usual JSON with as many values."""
    if not _TOO_SHORT <= len(body) < LONG:
        return len(body)
    if body.startswith(_PROTOBUF):
        values = sum(map(body.count, _SHORT_LENGTHS))
    else:
        values = max(body.count(b","), body.count(b"\n"))
    return max(len(body), _USUAL_LENGTH * values)


def weight_of_values(count: int) -> int:
    """The bytes of usual JSON with so many values."""
    return _USUAL_LENGTH * count
