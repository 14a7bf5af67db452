"""The nodes of a schema: scalars, special scalars, lists, maps and structs.

A schema says how an object is shaped (names and types of fields), how its lists and maps merge (keys, sets, atoms) and
how Go would write it (which fields are left out when empty, which are always there). Built-in kinds get theirs from
the catalogue, custom ones from their CRD. Nodes are immutable once made; what is derived from them (decoders,
protobuf writers) is made lazily and kept in ``derived``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.machinery.lazy import lazy

Decoder = Callable[[Any], Any]


class Type:
    """A node. ``go`` is the Go type's name as error messages show it."""

    __slots__ = ("go",)

    def __init__(self, go: str) -> None:
        self.go = go

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.go})"


class Scalar(Type):
    """A JSON scalar. ``kind`` is string, bool, int32, int64, uint64, uint8, float64 or bytes (base64)."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, go: str = "") -> None:
        super().__init__(go or {"bytes": "[]uint8"}.get(kind, kind))
        self.kind = kind


class Special(Type):
    """A type with its own JSON form: Quantity, Time, MicroTime, Duration, IntOrString, RawExtension, JSON …

    ``holds`` tells the struct that a value may be instead of its simple form; schemas of CRDs hold each other so.
    """

    __slots__ = ("holds", "kind")

    def __init__(self, kind: str, go: str, holds: Callable[[], Struct] | None = None) -> None:
        super().__init__(go)
        self.kind = kind
        self.holds = holds


class ListOf(Type):
    """A list of items of one type."""

    __slots__ = ("item",)

    def __init__(self, item: Type, go: str = "") -> None:
        super().__init__(go or f"[]{item.go}")
        self.item = item


class MapOf(Type):
    """A map from strings to values of one type."""

    __slots__ = ("value",)

    def __init__(self, value: Type, go: str = "", key_go: str = "string") -> None:
        super().__init__(go or f"map[{key_go}]{value.go}")
        self.value = value


class Field:
    """One field of a struct, in its JSON name, with everything the struct's tags say about it."""

    __slots__ = (
        "default", "list_keys", "list_type", "map_type", "merge_key", "name", "number", "omit_empty", "omit_zero",
        "patch", "pointer", "proto_name", "required", "type",
    )  # fmt: skip

    def __init__(self, name: str, type: Type, *, number: int = 0, pointer: bool = False) -> None:
        self.name = name
        self.type = type
        self.number = number
        self.pointer = pointer
        self.omit_empty = False
        self.omit_zero = False
        self.required = False
        self.default: Any = None
        self.list_type = ""
        self.list_keys: tuple[str, ...] = ()
        self.map_type = ""
        self.patch: frozenset[str] = frozenset()
        self.merge_key = ""
        self.proto_name = name

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.type.go})"


class Inline:
    """Fields of another struct that stand among the owner's own in JSON, but are a message of their own in protobuf."""

    __slots__ = ("number", "struct")

    def __init__(self, struct: Struct, number: int) -> None:
        self.struct = struct
        self.number = number


class Struct(Type):
    """Named fields. Members are read when first needed, so types may refer to each other."""

    def __init__(self, name: str, load: Callable[[], list[Field | Inline]], *, go: str, map_type: str = "") -> None:
        super().__init__(go)
        self.name = name
        self.map_type = map_type
        self.is_object = False
        self.unions: Any = None
        self._load = load
        self.derived: dict[str, Any] = {}

    @lazy
    def members(self) -> list[Field | Inline]:
        """Fields and inlined structs as declared, in order."""
        return self._load()

    @lazy
    def fields(self) -> dict[str, Field]:
        """All fields as JSON shows them, inlined ones included, in declared order."""
        fields: dict[str, Field] = {}
        for member in self.members:
            if isinstance(member, Inline):
                fields.update(member.struct.fields)
            else:
                fields[member.name] = member
        return fields

    @property
    def short_name(self) -> str:
        """The struct's name without its package, as Go's decoding errors show it."""
        return self.name.rpartition(".")[2]
