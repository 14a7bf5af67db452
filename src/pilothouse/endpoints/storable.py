"""A look at a long body before anything is made of it: whether the object could be stored at all.

``{}`` is three bytes, and as a container it is half a kilobyte of defaults, mounts and errors. Yet in storage it takes
at least what protobuf writes of an empty one. So the items of a body are counted, and where they alone would be more
than the store takes, the object is refused before it fills the memory; kube-apiserver says so, or what else is wrong,
after it has. Metadata and status are not counted: both may be dropped on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from pilothouse.machinery import errors
from pilothouse.machinery.protobuf.encoding import has_protobuf, message_encoder
from pilothouse.machinery.protobuf.wire import BYTES, read_length, read_varint, skip
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Struct, Type
from pilothouse.machinery.workers import ABANDONED, checkpoint

MOST_BYTES: Final = 2 << 20
"""More than etcd takes, whatever else is said of the object."""
_HEAD: Final = 2
"""Of an item: its field's number and its length."""
_DROPPED: Final = frozenset({"metadata", "status"})
_Look = Callable[[Any], int]


def check_storable(struct: Struct, value: Any) -> None:
    """Raise the Status for an object whose items alone are too much for the store; ``value`` is a parsed body."""
    if value.__class__ is not dict:
        return
    looks, total = _looks_of(struct), 0
    for name, given in value.items():
        look = None if name in _DROPPED else looks.get(name)
        if look is not None:
            total += look(given)
    _refuse_beyond(total)


def check_message_storable(struct: Struct, data: bytes) -> None:
    """The same for the bytes of a message; what is wrong with them, decoding says."""
    with suppress(ValueError):
        _refuse_beyond(_least_of_message(struct, data, 0, len(data), _DROPPED))


def _refuse_beyond(total: int) -> None:
    if total > MOST_BYTES:
        raise errors.generic("etcdserver: request is too large")


def _looks_of(struct: Struct) -> dict[str, _Look]:
    """How the fields are looked at that have lists of objects in them, made once."""
    looks: dict[str, _Look] | None = struct.derived.get("storable")
    if looks is None:
        looks = struct.derived["storable"] = {}
        for field in struct.fields.values():
            if (look := _look_at(field, struct)) is not None:
                looks[field.name] = look
    return looks


def _look_at(field: Field, owner: Struct) -> _Look | None:
    kind = field.type
    if isinstance(kind, MapOf):
        kind = kind.value
        inner = _inner_look(kind)
        return None if inner is None else lambda given: _sum(inner, given.values()) if given.__class__ is dict else 0
    return _inner_look(kind)


def _inner_look(kind: Type) -> _Look | None:
    if isinstance(kind, Struct):
        return lambda given: _least_of(kind, given)
    if isinstance(kind, ListOf) and isinstance(kind.item, Struct) and has_protobuf(kind.item):
        item = kind.item
        return lambda given: _least_of_list(item, given)
    return None


def _least_of_list(item: Struct, given: Any) -> int:
    if given.__class__ is not list:
        return 0
    if ABANDONED:
        checkpoint()
    total = len(given) * _least_of_item(item)
    if total > MOST_BYTES or not _looks_of(item):
        return total
    return total + _sum(lambda each: _least_of(item, each), given)


def _least_of(struct: Struct, given: Any) -> int:
    if not given or given.__class__ is not dict:
        return 0
    looks, total = _looks_of(struct), 0
    if looks:
        for name, value in given.items():
            if (look := looks.get(name)) is not None:
                total += look(value)
    return total


def _sum(look: _Look, values: Any) -> int:
    total = 0
    for each in values:
        if each:
            total += look(each)
            if total > MOST_BYTES:
                break
    return total


def _least_of_item(item: Struct) -> int:
    least: int | None = item.derived.get("storable_least")
    if least is None:
        least = item.derived["storable_least"] = _HEAD + len(message_encoder(item)({}))
    return least


_Member = tuple[Struct, int]
"""What a field of a message is, and what it takes at least beyond what is inside."""


def _members_of(struct: Struct) -> dict[int, tuple[str, _Member]]:
    """The fields that are messages and have a name, or whose own fields stand among the others, by number."""
    members: dict[int, tuple[str, _Member]] | None = struct.derived.get("storable_members")
    if members is None:
        members = struct.derived["storable_members"] = {}
        for member in struct.members:
            if isinstance(member, Inline):
                members[member.number] = "", (member.struct, 0)
            elif isinstance(member.type, Struct):
                members[member.number] = member.name, (member.type, 0)
            elif isinstance(member.type, ListOf) and isinstance(member.type.item, Struct):
                item = member.type.item
                if member.number and has_protobuf(item):
                    members[member.number] = member.name, (item, _least_of_item(item))
    return members


def _least_of_message(
    struct: Struct, data: bytes, position: int, end: int, dropped: frozenset[str] = frozenset()
) -> int:
    """Raises ``ValueError`` for what is no message. It goes as deep as types do, whatever the bytes are."""
    if ABANDONED:
        checkpoint()
    members, total = _members_of(struct), 0
    while position < end and total <= MOST_BYTES:
        tag, after = read_varint(data, position, end)
        if tag & 7 != BYTES:
            position = skip(data, position, end)
            continue
        start, position = read_length(data, after, end)
        name, member = members.get(tag >> 3, ("", None))
        if member is not None and name not in dropped:
            item, least = member
            total += least + (_least_of_message(item, data, start, position) if position > start else 0)
    return total
