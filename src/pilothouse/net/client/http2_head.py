"""Heads over HTTP/2: requests as header blocks, decoded fields as the head of an answer. Pure functions of bytes.

What an answer may not say over HTTP/1.1 it may not say here either: it is passed on to clients of both.
"""

from __future__ import annotations

import re
from typing import Final

from pilothouse.net.client.head import Line, MalformedReply, ReplyHead, read_length
from pilothouse.net.client.outbound import Outbound, encode_authority
from pilothouse.net.dialing.failures import OutgoingError
from pilothouse.net.http2.field_lines import encode_fields
from pilothouse.net.http2.hpack import Field, encode_string
from pilothouse.net.messages import UnsafeHeader

_METHODS: Final = {"GET": b"\x82", "POST": b"\x83"}
_METHOD, _PATH = b"\x02", b"\x04"
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+").fullmatch
_BAD_VALUE: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_STATUS: Final = re.compile(rb"[1-9][0-9]{2}").fullmatch
_ORDINARY_NAME: Final = 128
_MOST_NAMES: Final = 1024
_names: dict[bytes, bytes] = {}
_NO_BODY: Final = (204, 304)


def request_block(outbound: Outbound) -> bytes:
    """The header block of a request. Raises OutgoingError for a value that would break out of its line."""
    method = outbound.method
    start = _METHODS.get(method) or _METHOD + encode_string(method.encode())
    fixed, length = outbound.fixed, outbound.declared_length
    try:
        if fixed is not None:
            rest = fixed.http2 + encode_fields(outbound.headers)
        else:
            hosts = [value for name, value in outbound.headers if name.lower() == b"host"]
            others = [pair for pair in outbound.headers if pair[0].lower() != b"host"]
            rest = encode_authority(hosts[0] if hosts else b"") + encode_fields(others)
    except UnsafeHeader as error:
        raise OutgoingError(f"net/http: invalid header field: {error}") from None
    if length is not None:
        rest += encode_fields([(b"content-length", b"%d" % length)])
    return b"".join((start, _PATH, encode_string(outbound.target), rest))


def make_head(fields: list[Field], method: str) -> ReplyHead:
    """What the first fields of an answer say. Raises MalformedReply."""
    if not fields or fields[0][0] != b":status" or not _STATUS(fields[0][1]):
        raise MalformedReply("malformed response from server: missing status pseudo header")
    head = ReplyHead(1, int(fields[0][1]), b"", _read(fields[1:]))
    if b"content-length" in head:
        head.length = read_length(head)
    elif method == "HEAD" or head.status in _NO_BODY:
        head.length = 0
    else:
        head.chunked = True  # a body without a length, which may have trailers
    return head


def make_trailers(fields: list[Field]) -> list[Field]:
    """What came after a body. Raises MalformedReply."""
    return [pair for _, pair in _read(fields)]


def _read(fields: list[Field]) -> list[Line]:
    if _BAD_VALUE(b"".join([value for _, value in fields])):
        raise MalformedReply("malformed response from server: malformed header value")
    return [(name, (_names.get(name) or _canonical(name), value)) for name, value in fields]


def _canonical(name: bytes) -> bytes:
    """A name as Go writes it."""
    if not _NAME(name):
        raise MalformedReply("malformed response from server: malformed header name")
    shown = name.title()
    if len(name) <= _ORDINARY_NAME:
        if len(_names) >= _MOST_NAMES:
            _names.clear()
        _names[name] = shown
    return shown
