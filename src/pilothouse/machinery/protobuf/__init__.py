"""Kubernetes protobuf, both directions, driven by the field numbers of the schema.

``encoding`` writes messages byte for byte as kube-apiserver's generated code does, ``decoding`` reads them into
normalised objects, ``envelope`` is what stands around them: the ``k8s`` prefix with its Unknown message, lists and
watch frames. Whatever bytes come in, the only exception out is ``ProtobufError``.
"""

from pilothouse.machinery.protobuf.decoding import decode_message, decode_partly
from pilothouse.machinery.protobuf.encoding import encode_message, has_protobuf
from pilothouse.machinery.protobuf.envelope import (
    PREFIX,
    Envelope,
    decode,
    encode,
    encode_watch_event,
    frame,
    list_parts,
    unwrap,
    wrap,
)
from pilothouse.machinery.protobuf.wire import ProtobufError, skip

__all__ = [
    "PREFIX",
    "Envelope",
    "ProtobufError",
    "decode",
    "decode_message",
    "decode_partly",
    "encode",
    "encode_message",
    "encode_watch_event",
    "frame",
    "has_protobuf",
    "list_parts",
    "skip",
    "unwrap",
    "wrap",
]
