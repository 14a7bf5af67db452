"""Fields in the order of their struct, as kube-apiserver writes them; for texts that quote an object.

Objects keep the order in which their fields came, which JSON does not care for. Only where an object becomes part of a
message does the order show.
"""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.schema.types import ListOf, MapOf, Special, Struct, Type


def arrange(kind: Type | None, value: Any) -> Any:
    """The same value, the fields of structs in declared order and the keys of maps sorted."""
    if isinstance(kind, Struct) and isinstance(value, dict):
        known = {name: arrange(field.type, value[name]) for name, field in kind.fields.items() if name in value}
        return known | {name: value[name] for name in value if name not in known}
    if isinstance(kind, ListOf) and isinstance(value, list):
        return [arrange(kind.item, item) for item in value]
    if isinstance(kind, MapOf) and isinstance(value, dict):
        return {key: arrange(kind.value, value[key]) for key in sorted(value)}
    if isinstance(kind, Special) and kind.holds is not None:
        held = kind.holds()
        return [arrange(held, item) for item in value] if isinstance(value, list) else arrange(held, value)
    return value


def below(kind: Type | None, key: str) -> Type | None:
    """The type of what stands under a key, where the schema knows it."""
    if isinstance(kind, Struct):
        field = kind.fields.get(key)
        return None if field is None else field.type
    if isinstance(kind, ListOf):
        return kind.item
    return kind.value if isinstance(kind, MapOf) else None
