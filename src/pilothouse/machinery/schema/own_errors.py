"""Which of several errors of a value kube-apiserver tells.

Its decoder notes the first value of a wrong type and goes on, but stops at a value that reads its JSON itself (a time,
a quantity) and cannot. So an error of such a value is told before any other, wherever it stands.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.schema.decoding import DecodeError, Seen, decode, field_labels, special_decoder
from pilothouse.machinery.schema.types import ListOf, MapOf, Special, Struct, Type


def gravest(struct: Struct, value: Any, first: DecodeError) -> DecodeError:
    """The error to tell, of a value in which decoding found ``first``."""
    try:
        _look(struct, value)
    except DecodeError as error:
        return error
    return first


def first_error(struct: Struct, value: Any, otherwise: DecodeError) -> DecodeError:
    """The error that decoding this value would be refused with; ``otherwise`` if it finds none."""
    try:
        decode(struct, value)
    except DecodeError as error:
        return gravest(struct, value, error)
    return otherwise


def _look(kind: Type, value: Any) -> None:
    """Raise the error of the first value inside that reads itself; what has a wrong type is passed over."""
    if isinstance(kind, Struct):
        if isinstance(value, dict):
            _look_inside(kind, value)
    elif isinstance(kind, ListOf):
        for item in value if isinstance(value, list) else ():
            _look(kind.item, item)
    elif isinstance(kind, MapOf):
        for item in value.values() if isinstance(value, dict) else ():
            _look(kind.value, item)
    elif isinstance(kind, Special) and value is not None:
        special_decoder(kind)(value, Seen())


def _look_inside(struct: Struct, value: dict[str, Any]) -> None:
    for key, item in value.items():
        field = struct.fields.get(key)
        if field is not None:
            try:
                _look(field.type, item)
            except DecodeError as error:
                error.inside(struct.short_name, field_labels(struct)[key])
                raise
