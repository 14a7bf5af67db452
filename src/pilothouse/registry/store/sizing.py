"""How large an object may be: as large as etcd takes it from kube-apiserver, whatever store is behind.

kube-apiserver writes built-in objects as protobuf, custom ones and their definitions as JSON, in a transaction that
names the key three times. etcd refuses transactions over 1.5 MiB; its client does not even send those over 2 MiB.
Clients see which of the two it was. The protobuf is made only for objects whose JSON is near the limit: it is never the
longer of the two.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.gvk import GroupVersionKind
from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.types import Struct
from pilothouse.storage.backends.contract import TooLarge

SURELY_FITS: Final = 1_500_000
"""Values up to this length need no closer look."""
_MOST_TAKEN: Final = 1536 * 1024
_MOST_SENT: Final = 2048 * 1024
_KEPT_AS_JSON: Final = ("apiextensions.", "apiregistration.")
_PROPOSAL_OVERHEAD: Final = 18
_JSON_END: Final = 1


def check_size(key: str, obj: Object, json_length: int, expected: int, struct: Struct | None) -> None:
    """Raise ``TooLarge`` for an object that etcd would not take; ``expected`` is the revision it is to replace."""
    if struct is None or is_kept_as_json(struct):
        length = json_length + _JSON_END
    else:
        from pilothouse.machinery import protobuf

        length = len(protobuf.encode(struct, obj, GroupVersionKind("", struct.name, "")))
    size = transaction_size(len(key.encode()), length, expected)
    if size > _MOST_SENT:
        why = f"trying to send message larger than max ({size} vs. {_MOST_SENT})"
        raise TooLarge(f"rpc error: code = ResourceExhausted desc = {why}")
    if size + _PROPOSAL_OVERHEAD > _MOST_TAKEN:
        raise TooLarge("etcdserver: request is too large")


def is_kept_as_json(struct: Struct) -> bool:
    """Whether kube-apiserver stores objects of this type as JSON, although they have a protobuf form."""
    return struct.name.startswith(_KEPT_AS_JSON)


def transaction_size(key: int, value: int, expected: int) -> int:
    """The length of "put this if the key stands at a revision, else give what is there" as a message."""
    named = 1 + _prefixed(key)
    compare = 2 + named + 1 + _varint(expected)
    put = named + 1 + _prefixed(value)
    success = 1 + _prefixed(put)
    failure = 1 + _prefixed(named)
    return 3 + _prefixed(compare) + _prefixed(success) + _prefixed(failure)


def _prefixed(length: int) -> int:
    return _varint(length) + length


def _varint(number: int) -> int:
    return max(1, (number.bit_length() + 6) // 7)
