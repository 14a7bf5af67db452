"""PEM blocks as Go's decoder finds them: text around blocks is skipped, and so are blocks that are damaged."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

_BEGIN = re.compile(rb"(?:^|\n)-----BEGIN ([^\n]*?)-----[ \t\r]*(?:\n|$)")
_HEADER = re.compile(rb"[^\n]*:[^\n]*(?:\n|$)")


class Block(NamedTuple):
    """One block: what its first line says, its headers, its content."""

    label: str
    headers: int
    content: bytes


def blocks(data: bytes) -> Iterator[Block]:
    """All blocks, in order."""
    at = 0
    while begin := _BEGIN.search(data, at):
        block, at = _read(data, begin)
        if block is not None:
            yield block


def _read(data: bytes, begin: re.Match[bytes]) -> tuple[Block | None, int]:
    start = begin.end()
    headers = 0
    while header := _HEADER.match(data, start):
        headers += 1
        start = header.end()
    label = begin.group(1)
    end = re.compile(rb"(?:^|\n)-----END " + re.escape(label) + rb"-----[ \t\r]*(?:\n|$)").search(
        data, max(start - 1, 0)
    )
    if end is None:
        return None, begin.end()
    text = data[start : end.start()].translate(None, b"\r\n \t")
    try:
        return Block(label.decode("utf-8", "replace"), headers, base64.b64decode(text, validate=True)), end.end() - 1
    except binascii.Error:
        return None, begin.end()
