"""Empty lists that are always written read back as null.

kube-apiserver keeps objects in a form that cannot tell an empty list from none. Fields that are left out when empty
show no difference; those that are always written come back as ``null``. This is done right before storing, after field
management has seen what the client sent.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.schema.types import ListOf, MapOf, Struct, Type


def settle(kind: Type, value: Any) -> Any:
    """The value as it will read back. Containers on the way to a change are copied, all others shared."""
    if isinstance(kind, Struct) and isinstance(value, dict):
        return _settle_struct(kind, value)
    if isinstance(kind, ListOf) and isinstance(value, list) and not isinstance(kind.item, ListOf):
        settled = [settle(kind.item, item) for item in value]
        return value if all(a is b for a, b in zip(settled, value, strict=True)) else settled
    if isinstance(kind, MapOf) and isinstance(value, dict) and isinstance(kind.value, Struct):
        settled_map = {key: settle(kind.value, item) for key, item in value.items()}
        return value if all(settled_map[key] is value[key] for key in value) else settled_map
    return value


def _settle_struct(struct: Struct, value: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, item in value.items():
        field = struct.fields.get(name)
        if field is None:
            continue
        if item == [] and isinstance(field.type, ListOf) and not field.pointer:
            changed[name] = None
        elif item:
            settled = settle(field.type, item)
            if settled is not item:
                changed[name] = settled
    return {**value, **changed} if changed else value
