"""PEM blocks as Go's decoder finds them: text around blocks is skipped, and so are blocks that are damaged.

A block is looked for from its end: the first line that ends one, and the last line before it that begins one. So every
line is looked at a bounded number of times, however many blocks begin and never end.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from typing import Final, NamedTuple

from pilothouse.machinery import base64_text

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"\n-----END "
_DASHES: Final = b"-----"
_BLANKS: Final = b" \t"


class Block(NamedTuple):
    """One block: what its first line says, its headers, its content."""

    label: str
    headers: int
    content: bytes


def blocks(data: bytes) -> Iterator[Block]:
    """All blocks, in order."""
    at = 0
    while (found := _next(data, at)) is not None:
        block, at = found
        yield block


class _EndOfBlocks(Exception):
    """Headers run on beyond the end of their block: Go gives up on all that follows."""


def _next(data: bytes, at: int) -> tuple[Block, int] | None:
    """The first sound block from a place on, and where the line begins that follows it."""
    while (end := data.find(_END, at)) >= 0:
        begin = data.rfind(_BEGIN, at, end)
        if begin >= 0 and (begin == at or data[begin - 1] == 0x0A):
            try:
                found = _read(data, begin + len(_BEGIN), end)
            except _EndOfBlocks:
                return None
            if found is not None:
                return found
        at = end + len(_END)
    return None


def _read(data: bytes, start: int, end: int) -> tuple[Block, int] | None:
    """The block whose label begins at ``start`` and whose last line follows the line feed at ``end``, if it is one."""
    line, at = _line(data, start)
    if not line.endswith(_DASHES):
        return None
    label, (headers, at) = line.removesuffix(_DASHES), _skip_headers(data, at)
    trailer = end + len(_END)
    if headers and at > end:
        if at > trailer:
            raise _EndOfBlocks
        return None
    last, after = _line(data, trailer)
    if last != label + _DASHES:
        return None
    try:
        content = base64_text.decode(data[at:end].translate(None, b"\r\n \t")) if at < end else b""
    except binascii.Error:
        return None
    return Block(label.decode("utf-8", "replace"), headers, content), after


def _skip_headers(data: bytes, at: int) -> tuple[int, int]:
    """How many lines with a colon there are, and where the first one without begins."""
    headers = 0
    while True:
        if at >= len(data):
            raise _EndOfBlocks
        line, after = _line(data, at)
        if b":" not in line:
            return headers, at
        headers, at = headers + 1, after


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    """A line without its end and the blanks before that, and where the next one begins."""
    end = data.find(b"\n", at)
    if end < 0:
        return data[at:].rstrip(_BLANKS), len(data)
    return data[at:end].removesuffix(b"\r").rstrip(_BLANKS), end + 1
