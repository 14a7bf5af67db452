"""Encoding header fields without a table that changes: what is encoded for one connection is right for all.

Answers, and requests that we make, are built of such fields; those that come again and again are encoded once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from pilothouse.net.http2 import hpack
from pilothouse.net.messages import UnsafeHeader

Pair = tuple[bytes, bytes]
INDEX: Final = {field[0]: index for index, field in reversed(list(enumerate(hpack.STATIC, 1)))}
"""The first place of each name in the static table."""
_HOP_BY_HOP: Final = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_UNSAFE: Final = re.compile(rb"[\0\r\n]").search
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_MAX_KNOWN: Final = 1024
_SHORT: Final = 127  # strings up to here have a length of one byte
_names: dict[bytes, bytes] = {}
_fields: dict[Pair, bytes] = {}


def encode_fields(pairs: Iterable[Pair]) -> bytes:
    """Fields one after the other, without those that HTTP/2 has no place for. Raises UnsafeHeader."""
    return b"".join([_fields.get(pair) or encode_field(pair) for pair in pairs])


def encode_name(name: bytes) -> bytes:
    """A name, ready for a value behind it; empty for one that HTTP/2 has no place for."""
    known = _names.get(name)
    if known is None:
        lower = name.lower()
        if not _NAME(lower):
            raise UnsafeHeader(f"header named {name!r}")
        if lower in _HOP_BY_HOP:
            known = b""
        elif lower in INDEX:
            known = hpack.encode_integer(INDEX[lower], 4)
        else:
            known = b"\0" + hpack.encode_string(lower)
        if len(name) <= _SHORT:
            if len(_names) >= _MAX_KNOWN:
                _names.clear()
            _names[name] = known
    return known


def encode_field(pair: Pair) -> bytes:
    """One of them."""
    name, value = pair
    encoded_name = encode_name(name)
    if _UNSAFE(value):
        raise UnsafeHeader("line break in a header")
    if not encoded_name:
        return b""
    size = len(value)
    encoded = b"%b%c%b" % (encoded_name, size, value) if size < _SHORT else encoded_name + hpack.encode_string(value)
    if size <= 24 and len(name) <= _SHORT:  # what is longer is likely an id, and seen once
        if len(_fields) >= _MAX_KNOWN:
            _fields.clear()
        _fields[pair] = encoded
    return encoded
