"""Types of built-in objects for expressions, declared from the schemas of their structs.

Structs refer to each other and many are large, so each is declared when an expression first names a field of it. Types
whose JSON may be anything are dynamic.
"""

from __future__ import annotations

from pilothouse.cel.escaping import RESERVED, escape, unescape
from pilothouse.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    struct,
)
from pilothouse.machinery.schema import types as schema

_SCALARS = {
    "string": STRING,
    "bool": BOOL,
    "int32": INT,
    "int64": INT,
    "uint64": INT,
    "uint8": INT,
    "float64": DOUBLE,
    "bytes": BYTES,
}
_SPECIALS = {"Time": TIMESTAMP, "MicroTime": TIMESTAMP, "Duration": DURATION}


class BuiltInStruct:
    """A struct of the catalogue as a message type."""

    __slots__ = ("_owner", "_struct", "type")

    def __init__(self, owner: BuiltInTypes, declared: schema.Struct) -> None:
        self._owner = owner
        self._struct = declared
        self.type = struct(declared.name)

    def field(self, name: str) -> Type | None:
        found = self._struct.fields.get(self.property(name))
        return self._owner.declare(found.type) if found is not None else None

    def property(self, name: str) -> str:
        key = name if name in RESERVED else unescape(name)
        return key if key is not None and (key in RESERVED or escape(key) == name) else ""


class BuiltInTypes:
    """Declares structs and finds those declared; a provider of an environment."""

    __slots__ = ("_structs",)

    def __init__(self) -> None:
        self._structs: dict[str, BuiltInStruct] = {}

    def find(self, name: str) -> BuiltInStruct | None:
        return self._structs.get(name)

    def declare(self, declared: schema.Type) -> Type:
        """Return the type of a schema node."""
        if isinstance(declared, schema.Struct):
            known = self._structs.get(declared.name)
            if known is None:
                known = self._structs[declared.name] = BuiltInStruct(self, declared)
            return known.type
        if isinstance(declared, schema.ListOf):
            return list_of(self.declare(declared.item))
        if isinstance(declared, schema.MapOf):
            return map_of(STRING, self.declare(declared.value))
        if isinstance(declared, schema.Scalar):
            return _SCALARS.get(declared.kind, DYN)
        if isinstance(declared, schema.Special):
            return _SPECIALS.get(declared.kind, DYN)
        return DYN
