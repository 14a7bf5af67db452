"""Conversion between versions whose fields have the same names: what one of them lacks is dropped, what it always
writes is filled in. Versions of the very same shape need no conversion, and bytes of one serve for the other.
"""

from __future__ import annotations

from collections.abc import Callable

from pilothouse.machinery.objects import Object
from pilothouse.machinery.schema.decoding import decode
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type


def shaper(struct: Struct) -> Callable[[Object], Object]:
    """What brings an object into the shape of a type. Of its metadata nothing is lost."""

    def shape(obj: Object) -> Object:
        made = decode(struct, {**obj, "metadata": {}})[0]
        return {**made, "metadata": obj["metadata"]}

    return shape


def same_shape(one: Type, other: Type, within: frozenset[tuple[str, str]] = frozenset()) -> bool:
    """Whether values of both types are written alike."""
    if one is other:
        return True
    if isinstance(one, Struct) and isinstance(other, Struct):
        pair = (one.name, other.name)
        return pair in within or _same_fields(one.fields, other.fields, within | {pair})
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return same_shape(one.item, other.item, within)
    if isinstance(one, MapOf) and isinstance(other, MapOf):
        return same_shape(one.value, other.value, within)
    if isinstance(one, Scalar) and isinstance(other, Scalar):
        return one.kind == other.kind
    return isinstance(one, Special) and isinstance(other, Special) and one.kind == other.kind


def _same_fields(one: dict[str, Field], other: dict[str, Field], within: frozenset[tuple[str, str]]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(_same_field(field, other[name], within) for name, field in one.items())


def _same_field(one: Field, other: Field, within: frozenset[tuple[str, str]]) -> bool:
    tags = [(field.omit_empty, field.omit_zero, field.pointer) for field in (one, other)]
    return tags[0] == tags[1] and same_shape(one.type, other.type, within)
