"""What two servers have stored, made comparable."""

import json
import re

from pilothouse.apis import types
from pilothouse.machinery import protobuf

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"10\.0\.\d+\.\d+")
_PORT = re.compile(r'(?<=odePort": )\d+')


def plain(value):
    """A stored value with marks for what no two servers can agree on."""
    if value.startswith(protobuf.PREFIX):
        envelope = protobuf.decode(value)
        struct = types.struct_of(envelope.api_version, envelope.kind)
        obj = protobuf.decode_message(struct, envelope.raw)
        text = json.dumps([envelope.api_version, envelope.kind, obj])
    else:
        text = value.decode()
    return _PORT.sub("PORT", _ADDRESS.sub("ADDRESS", _TIME.sub("TIME", _UID.sub("UID", text))))


def canonical(value):
    """The value as it is written here: two that are plainly equal, and canonical, are the same bytes."""
    envelope = protobuf.decode(value)
    struct = types.struct_of(envelope.api_version, envelope.kind)
    if envelope.kind == "ControllerRevision":
        return value
    head = value[: value.index(envelope.raw)] if envelope.raw else b""
    return head + protobuf.encode_message(struct, protobuf.decode_message(struct, envelope.raw)) + b"\x1a\x00\x22\x00"
