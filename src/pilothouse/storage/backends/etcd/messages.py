"""Messages of etcd's v3 API, as far as a Kubernetes API server needs them: written field by field, read in one pass.

Requests are functions that give bytes, answers are small records. What is not known is skipped, so that a newer etcd
may say more. Whatever bytes come in, the only exception out is ``ProtobufError``.

Two answers come with every write: that it was carried out, and the watch that brings it back. etcd writes fields in
the order of their numbers and leaves out what is zero, so both are told by their first bytes (`_begin`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pilothouse.machinery.protobuf import ProtobufError
from pilothouse.machinery.protobuf.wire import (
    BYTES,
    VARINT,
    encode_tag,
    encode_varint,
    read_length,
    read_varint,
    short_heads,
    skip,
)
from pilothouse.storage.backends.contract import KeyValue

EVERYTHING: Final = b"\0"
"""As a key and as the end of a range: all keys there are."""
_SIGN: Final = 1 << 63
_HEADER: Final = re.compile(
    rb"\x0a[\x00-\x7f](?:\x08[\x80-\xff]{0,9}[\x00-\x7f])?(?:\x10[\x80-\xff]{0,9}[\x00-\x7f])?"
    rb"\x18([\x80-\xff]{0,8}[\x00-\x7f])"
).match
"""A short header: cluster and member, which are not asked for, and the revision."""
_SUCCEEDED: Final = b"\x10\x01"
_EVENTS: Final = b"\x5a"
_HEADS: Final = [short_heads(encode_tag(number, BYTES)) for number in range(4)]
"""What has a length has one of these numbers."""
Pieces = tuple[bytes, ...]
"""Of a message: what is long is put into the whole once, not at each level."""


# Requests


def range_request(
    key: bytes,
    end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    keys_only: bool = False,
    count_only: bool = False,
) -> bytes:
    """Read one key, or all in [key, end)."""
    return b"".join(
        (
            _data(1, key),
            _data(2, end),
            _number(3, limit),
            _number(4, revision),
            _number(8, keys_only),
            _number(9, count_only),
        )
    )


def put_if_request(key: bytes, value: bytes, expected: int, lease: int = 0) -> bytes:
    """Write a key that stands at a revision (0: is absent); the answer to a refusal has its current state."""
    return _guarded(_at_revision(key, expected), _put(key, value, lease), key)


def delete_if_request(key: bytes, expected: int) -> bytes:
    """Delete a key that stands at a revision; the answer to a refusal has its current state."""
    return _guarded(_at_revision(key, expected), (_message(3, _data(1, key)),), key)


def put_at_version_request(key: bytes, value: bytes, version: int) -> bytes:
    """Write a key that has been written this many times; the answer to a refusal has its current state."""
    return _guarded(_data(3, key) + _number(4, version), _put(key, value), key)


def _at_revision(key: bytes, revision: int) -> bytes:
    return b"\x10\x02" + _data(3, key) + _number(6, revision)


def _put(key: bytes, value: bytes, lease: int = 0) -> Pieces:
    if not value:
        return (_message(2, _data(1, key) + _number(3, lease)),)
    start, end = _data(1, key) + _head(2, len(value)), _number(3, lease)
    return _head(2, len(start) + len(value) + len(end)), start, value, end


def _guarded(compare: bytes, success: Pieces, key: bytes) -> bytes:
    failure = _message(3, _message(1, _data(1, key)))
    return b"".join((_message(1, compare), _head(2, sum(map(len, success))), *success, failure))


def compact_request(revision: int) -> bytes:
    """Forget what was superseded at or before a revision."""
    return _number(1, revision)


def watch_request(key: bytes, end: bytes, start: int, *, previous: bool, progress: bool = False) -> bytes:
    """Begin a watch from a revision on, in fragments where answers would be too large."""
    created = b"".join(
        (_data(1, key), _data(2, end), _number(3, start), _number(4, progress), _number(6, previous), _number(8, 1))
    )
    return _message(1, created)


PROGRESS_REQUEST: Final = b"\x1a\x00"
"""Asks the watches of a stream how far they are."""


def lease_request(seconds: int) -> bytes:
    """A lease that ends after this time unless it is renewed."""
    return _number(1, seconds)


def lease_id_request(lease: int) -> bytes:
    """For whatever is done to one lease: revoke, renew, ask for its time to live."""
    return _number(1, lease)


def _number(number: int, value: int) -> bytes:
    return encode_varint(number << 3 | VARINT) + encode_varint(value) if value else b""


def _data(number: int, value: bytes) -> bytes:
    return _message(number, value) if value else b""


def _message(number: int, value: bytes) -> bytes:
    return _head(number, len(value)) + value


def _head(number: int, length: int) -> bytes:
    return _HEADS[number][length] if length < 128 else _HEADS[number][0][:1] + encode_varint(length)


# Answers


@dataclass(slots=True)
class RangeAnswer:
    """What a range held at `revision`, which is the newest one. `count` is of the whole range."""

    revision: int
    items: list[KeyValue]
    more: bool
    count: int
    versions: list[int]
    """How often each item has been written."""


@dataclass(slots=True)
class TxnAnswer:
    """Whether the condition held; if not, `current` is the state in the way."""

    revision: int
    succeeded: bool
    current: KeyValue | None = None
    version: int = 0


@dataclass(slots=True)
class WatchedChange:
    """One key's change. A deletion has no value."""

    key: str
    revision: int
    value: bytes | None
    created: bool
    previous: KeyValue | None


@dataclass(slots=True)
class WatchAnswer:
    """One message of a watch stream; `fragment` says that more of the same revision may follow."""

    revision: int
    created: bool = False
    canceled: bool = False
    compacted: int = 0
    reason: str = ""
    fragment: bool = False
    changes: list[WatchedChange] = field(default_factory=list)


@dataclass(slots=True)
class StatusAnswer:
    """What a member says about itself."""

    version: str
    size: int
    size_in_use: int


def read_range(data: bytes) -> RangeAnswer:
    """The answer to a range."""
    return _read_range(data, 0, len(data))


def _read_range(data: bytes, start: int, end: int) -> RangeAnswer:
    answer = RangeAnswer(0, [], False, 0, [])
    for number, value, stop in _fields(data, start, end):
        if number == 1:
            answer.revision = _header_revision(data, value, stop)
        elif number == 2:
            item, version = _key_value(data, value, stop)
            answer.items.append(item)
            answer.versions.append(version)
        elif number == 3:
            answer.more = bool(value)
        elif number == 4:
            answer.count = value
    return answer


@lru_cache(maxsize=8)
def read_revision(data: bytes) -> int:
    """The newest revision, by an answer that tells nothing else: the same one until somebody writes, so remembered."""
    if (begun := _begin(data)) is not None:
        return begun[0]
    return next(
        (_header_revision(data, value, stop) for number, value, stop in _fields(data, 0, len(data)) if number == 1), 0
    )


def read_txn(data: bytes) -> TxnAnswer:
    """The answer to a guarded write."""
    if (begun := _begin(data)) is not None and data.startswith(_SUCCEEDED, begun[1]):
        return TxnAnswer(begun[0], True)
    answer = TxnAnswer(0, False)
    for number, value, stop in _fields(data, 0, len(data)):
        if number == 1:
            answer.revision = _header_revision(data, value, stop)
        elif number == 2:
            answer.succeeded = bool(value)
        elif number == 3:
            for operation, first, last in _fields(data, value, stop):
                found = _read_range(data, first, last) if operation == 1 else None
                if found is not None and found.items:
                    answer.current, answer.version = found.items[0], found.versions[0]
    return answer


def has_only_known(data: bytes, revision: int) -> bool:
    """Whether a message of a watch stream has nothing but changes, and none after a revision.

    etcd stamps such a message with a revision that none of its changes is after: that of the transaction they are from,
    or the newest there was when the past was read. Events right behind the header mean that no flag is set.
    """
    begun = _begin(data)
    return begun is not None and 0 < begun[0] <= revision and data.startswith(_EVENTS, begun[1])


def _begin(data: bytes) -> tuple[int, int] | None:
    """The revision in the header of an answer and where the header ends; None where it is not the usual one."""
    header = _HEADER(data)
    if header is None or header.end() > (end := 2 + data[1]):
        return None
    revision = 0
    for byte in reversed(header[1]):
        revision = revision << 7 | byte & 0x7F
    return revision, end


def read_watch(data: bytes) -> WatchAnswer:
    """One message of a watch stream."""
    answer = WatchAnswer(0)
    for number, value, stop in _fields(data, 0, len(data)):
        if number == 11:
            answer.changes.append(_change(data, value, stop))
        elif number == 1:
            answer.revision = _header_revision(data, value, stop)
        elif number == 3:
            answer.created = bool(value)
        elif number == 4:
            answer.canceled = bool(value)
        elif number == 5:
            answer.compacted = _signed(value)
        elif number == 6:
            answer.reason = _text(data, value, stop)
        elif number == 7:
            answer.fragment = bool(value)
    return answer


def read_lease(data: bytes) -> tuple[int, int]:
    """Identity and seconds of a granted, renewed or asked-for lease; seconds 0 or less for one that has ended."""
    lease = seconds = 0
    for number, value, _ in _fields(data, 0, len(data)):
        if number == 2:
            lease = _signed(value)
        elif number == 3:
            seconds = _signed(value)
    return lease, seconds


def read_leases(data: bytes) -> list[int]:
    """The identities of all leases."""
    return [
        _signed(identity)
        for number, value, stop in _fields(data, 0, len(data))
        if number == 2
        for field_number, identity, _ in _fields(data, value, stop)
        if field_number == 1
    ]


def read_granted_seconds(data: bytes) -> int:
    """How long a lease was granted for, from the answer about its time to live."""
    return next((_signed(value) for number, value, _ in _fields(data, 0, len(data)) if number == 4), 0)


def read_status(data: bytes) -> StatusAnswer:
    """The answer about a member."""
    answer = StatusAnswer("", 0, 0)
    for number, value, stop in _fields(data, 0, len(data)):
        if number == 2:
            answer.version = _text(data, value, stop)
        elif number == 3:
            answer.size = value
        elif number == 9:
            answer.size_in_use = value
    return answer


def _change(data: bytes, start: int, end: int) -> WatchedChange:
    deleted, item, previous = False, None, None
    for number, value, stop in _fields(data, start, end):
        if number == 1:
            deleted = value == 1
        elif number == 2:
            item = _key_value(data, value, stop)[0]
        elif number == 3:
            previous = _key_value(data, value, stop)[0]
    if item is None:
        raise ProtobufError("an event without a key")
    created = not deleted and item.created == item.revision
    return WatchedChange(item.key, item.revision, None if deleted else item.value, created, previous)


def _key_value(data: bytes, start: int, end: int) -> tuple[KeyValue, int]:
    key, value, revision, created, version = "", b"", 0, 0, 0
    for number, first, last in _fields(data, start, end):
        if number == 1:
            key = _text(data, first, last)
        elif number == 2:
            created = first
        elif number == 3:
            revision = first
        elif number == 4:
            version = first
        elif number == 5:
            value = data[first:last]
    return KeyValue(key, value, revision, created), version


def _header_revision(data: bytes, start: int, end: int) -> int:
    return next((value for number, value, _ in _fields(data, start, end) if number == 3), 0)


def _text(data: bytes, start: int, end: int) -> str:
    # Keys of others may be any bytes; such a key is shown, never written.
    return data[start:end].decode("utf-8", "surrogateescape")


def _signed(value: int) -> int:
    return value - (_SIGN << 1) if value >= _SIGN else value


def _fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(number, value, 0) of each number and (number, start, stop) of everything that has a length."""
    while position < end:
        start = position
        tag = data[position]
        if tag < 0x80:
            position += 1
        else:
            tag, position = read_varint(data, position, end)
        wire_type = tag & 7
        if wire_type == BYTES:
            first, position = read_length(data, position, end)
            yield tag >> 3, first, position
        elif wire_type == VARINT:
            value, position = read_varint(data, position, end)
            yield tag >> 3, value, 0
        else:
            position = skip(data, start, end)


def prefix_range(prefix: str, start: str | None = None) -> tuple[bytes, bytes]:
    """The range of all keys below a prefix, from a key on."""
    first = max(prefix, start or "").encode()
    return first or EVERYTHING, range_end(prefix.encode())


def range_end(prefix: bytes) -> bytes:
    """The first key that does not begin with a prefix."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else EVERYTHING
