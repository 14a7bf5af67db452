"""Naming the fields that decoding dropped: ``spec.containers[0].imagePullPolcy``.

Decoding only notices *that* something was unknown; this second walk, over the few requests it happens to, says where.
Names come in the order the document has them, as kube-apiserver reports them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.schema.types import ListOf, MapOf, Struct, Type


def unknown_fields(kind: Type, value: Any, path: str = "") -> Iterator[str]:
    """Paths of all fields in the value that the schema has no place for."""
    if isinstance(kind, Struct) and isinstance(value, dict):
        fields = kind.fields
        for key, item in value.items():
            where = f"{path}.{key}" if path else key
            if key in fields:
                yield from unknown_fields(fields[key].type, item, where)
            else:
                yield where
    elif isinstance(kind, ListOf) and isinstance(value, list):
        for position, item in enumerate(value):
            yield from unknown_fields(kind.item, item, f"{path}[{position}]")
    elif isinstance(kind, MapOf) and isinstance(value, dict):
        for key, item in value.items():
            yield from unknown_fields(kind.value, item, f"{path}.{key}" if path else key)
