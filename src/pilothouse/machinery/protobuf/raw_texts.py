"""The texts of raw JSON values in a message, as they were sent; decoding keeps only what they mean.

Only the fields that lead to a raw value are entered, so kinds without any pay nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.protobuf.wire import BYTES, encode_tag, read_length, read_varint, skip
from pilothouse.machinery.schema.raw import ANY, Place, Texts
from pilothouse.machinery.schema.types import Field, Inline, ListOf, MapOf, Struct, Type


def read_raw_texts(struct: Struct, message: bytes, places: tuple[Place, ...]) -> Texts:
    """The texts in a sound message at the places that the struct has them."""
    found: Texts = {}
    _walk(struct, message, places, (), found)
    return found


def _walk(kind: Type, data: bytes, places: tuple[Place, ...], here: Place, found: Texts) -> None:
    if () in places:
        for number, body in _bodies(data):
            if number == 1:
                found[here] = body
    elif isinstance(kind, Struct):
        for member in kind.members:
            if isinstance(member, Inline):
                for _, body in _bodies(data, member.number):
                    _walk(member.struct, body, places, here, found)
            else:
                _walk_field(member, data, places, here, found)


def _walk_field(field: Field, data: bytes, places: tuple[Place, ...], here: Place, found: Texts) -> None:
    below = tuple(place[1:] for place in places if place[0] == field.name)
    if not below or not field.number:
        return
    here = (*here, field.name)
    inside = tuple(place[1:] for place in below if place and place[0] == ANY)
    for position, (_, body) in enumerate(_bodies(data, field.number)):
        if isinstance(field.type, ListOf):
            _walk(field.type.item, body, inside, (*here, str(position)), found)
        elif isinstance(field.type, MapOf):
            entry = dict(_bodies(body))
            key = entry.get(1, b"").decode()
            _walk(field.type.value, entry.get(2, b""), inside, (*here, key), found)
        else:
            _walk(field.type, body, below, here, found)


def _bodies(data: bytes, wanted: int = 0) -> Iterator[tuple[int, bytes]]:
    """The fields with a length, all or those of one number."""
    tag_wanted = encode_tag(wanted, BYTES) if wanted else b""
    position, end = 0, len(data)
    while position < end:
        if wanted and not data.startswith(tag_wanted, position):
            position = skip(data, position, end)
            continue
        tag, after = read_varint(data, position, end)
        if tag & 7 != BYTES:
            position = skip(data, position, end)
            continue
        start, position = read_length(data, after, end)
        yield tag >> 3, data[start:position]
