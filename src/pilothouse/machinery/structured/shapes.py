"""How a schema looks to merging.

A shape says what may stand at a place: a scalar of some type, a list, a map, or several of these where the schema
leaves it open. Lists are atomic, or sets, or have keys; maps and structs are merged field by field unless atomic.
Built-in and custom schemas end in the same shapes. Shapes are made when first asked for and kept with their struct, so
types may refer to themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.machinery.lazy import lazy
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct, Type

STRING: Final = "string"
NUMERIC: Final = "numeric"
BOOLEAN: Final = "boolean"
UNTYPED: Final = "untyped"


class Shape:
    """What may stand at one place of an object. At least one of the three is set."""

    __slots__ = ("description", "is_open", "items", "map", "scalar")

    def __init__(self, scalar: str = "", items: ListShape | None = None, map: MapShape | None = None) -> None:
        self.scalar = scalar
        self.items = items
        self.map = map
        self.description: Callable[[Any], dict[str, Any]] | None = None
        """What ``describing`` has made of this shape."""
        self.is_open: bool | None = None
        """Whether values of several types may stand here or below; None until somebody asks."""


class ListShape:
    """A list: atomic, a set of scalars (no keys), or items told apart by key fields."""

    def __init__(self, item: Callable[[], Shape], *, atomic: bool = True, keys: tuple[str, ...] = ()) -> None:
        self._item = item
        self.atomic = atomic
        self.keys = keys

    @lazy
    def item(self) -> Shape:
        return self._item()

    @lazy
    def key_fields(self) -> tuple[tuple[str, Any], ...]:
        """The key fields in the order of their names, each with its default."""
        shape = self.item.map
        defaults = shape.defaults if shape is not None else {}
        return tuple((name, defaults.get(name)) for name in sorted(self.keys))


class MapShape:
    """A struct (named fields) or a map (one shape for any key), or both."""

    def __init__(
        self,
        load: Callable[[], dict[str, Shape]] = dict,
        *,
        element: Callable[[], Shape] | None = None,
        defaults: Callable[[], dict[str, Any]] = dict,
        atomic: bool = False,
    ) -> None:
        self._load = load
        self._element = element
        self._defaults = defaults
        self.atomic = atomic

    @lazy
    def fields(self) -> dict[str, Shape]:
        return self._load()

    @lazy
    def element(self) -> Shape | None:
        """The shape of fields that have no name in the schema; None where there may be none."""
        return self._element() if self._element is not None else None

    @lazy
    def defaults(self) -> dict[str, Any]:
        """Defaults of fields, for lists whose items leave a key out."""
        return self._defaults()

    def field(self, name: str) -> Shape | None:
        return self.fields.get(name) or self.element

    def as_atomic(self, atomic: bool) -> MapShape:
        """The same map where a field says otherwise how it merges."""
        return MapShape(lambda: self.fields, element=self._element, defaults=lambda: self.defaults, atomic=atomic)


def _untyped_atomic() -> Shape:
    return UNTYPED_ATOMIC


def _deduced() -> Shape:
    return DEDUCED


UNTYPED_ATOMIC: Final = Shape(UNTYPED, ListShape(_untyped_atomic), MapShape(element=_untyped_atomic, atomic=True))
"""Anything, owned as a whole."""

DEDUCED: Final = Shape(UNTYPED, ListShape(_untyped_atomic), MapShape(element=_deduced))
"""Anything, maps field by field, lists as a whole: how values without a schema are merged."""

_FREE_OBJECT: Final = Shape(map=MapShape(element=_deduced))
INT_OR_STRING: Final = Shape(UNTYPED, ListShape(_untyped_atomic), MapShape(element=_deduced))
"""Declared without a type, so that merging takes anything; validation comes later."""
# Open by their schema, but what is stored there is not.
_FREE_OBJECT.is_open = INT_OR_STRING.is_open = False
_SCALARS: Final = {
    "string": Shape(STRING), "bytes": Shape(STRING), "bool": Shape(BOOLEAN), "int32": Shape(NUMERIC),
    "int64": Shape(NUMERIC), "uint64": Shape(NUMERIC), "uint8": Shape(NUMERIC), "float64": Shape(NUMERIC),
}  # fmt: skip
_SPECIALS: Final = {
    "Quantity": Shape(UNTYPED), "Time": Shape(UNTYPED), "MicroTime": Shape(UNTYPED), "Duration": Shape(STRING),
    "IntOrString": INT_OR_STRING, "RawExtension": UNTYPED_ATOMIC, "FieldsV1": _FREE_OBJECT, "JSON": DEDUCED,
    "SchemaOrBool": DEDUCED, "SchemaOrArray": DEDUCED, "SchemaOrStringArray": DEDUCED,
}  # fmt: skip


def is_open(shape: Shape) -> bool:
    """Whether a field may change its type, so that Python's ``True == 1`` could hide a change."""
    if shape.is_open is None:
        shape.is_open = _reaches_open(shape, set())
    return shape.is_open


def _reaches_open(shape: Shape, seen: set[int]) -> bool:
    if shape.is_open is not None or id(shape) in seen:
        return bool(shape.is_open)
    seen.add(id(shape))
    if shape.scalar == UNTYPED and (shape.map is not None or shape.items is not None):
        return True
    below = [] if shape.map is None else [*shape.map.fields.values(), shape.map.element]
    below.append(None if shape.items is None else shape.items.item)
    return any(_reaches_open(inner, seen) for inner in below if inner is not None)


def shape_of(struct: Struct) -> Shape:
    """The shape of a struct, built once."""
    shape: Shape | None = struct.derived.get("shape")
    if shape is None:
        shape = struct.derived["shape"] = Shape(map=_struct_map(struct))
    return shape


def _struct_map(struct: Struct) -> MapShape:
    def load() -> dict[str, Shape]:
        return {field.name: field_shape(field) for field in struct.fields.values()}

    def defaults() -> dict[str, Any]:
        found = {field.name: _default(field) for field in struct.fields.values()}
        return {name: default for name, default in found.items() if default is not None}

    # A struct without fields is a free-form object to OpenAPI.
    element = None if struct.fields else _deduced
    return MapShape(load, element=element, defaults=defaults, atomic=struct.map_type == "atomic")


_ZEROS: Final = {
    "string": "", "bool": False, "int32": 0, "int64": 0, "uint64": 0, "uint8": 0, "float64": 0,
}  # fmt: skip


def _default(field: Field) -> Any:
    """The default that OpenAPI shows for a field: its own, or the zero of what is always written."""
    if field.default is not None or field.pointer or field.omit_empty or not isinstance(field.type, Scalar):
        return field.default
    return _ZEROS.get(field.type.kind)


def field_shape(field: Field) -> Shape:
    """The shape of a field: its type's, with what the field itself says about merging."""
    kind = field.type
    if isinstance(kind, ListOf):
        atomic, keys = _list_kind(field)
        return Shape(items=ListShape(lambda: type_shape(kind.item), atomic=atomic, keys=keys))
    if isinstance(kind, MapOf):
        return Shape(map=MapShape(element=lambda: type_shape(kind.value), atomic=field.map_type == "atomic"))
    if isinstance(kind, Struct) and field.map_type:
        own = shape_of(kind).map
        assert own is not None
        return Shape(map=own.as_atomic(field.map_type == "atomic"))
    return type_shape(kind)


def _list_kind(field: Field) -> tuple[bool, tuple[str, ...]]:
    """Whether the list is atomic, and its keys. Without a list type the older patch strategy tells."""
    if field.list_type:
        return field.list_type == "atomic", field.list_keys
    if "merge" in field.patch:
        return False, (field.merge_key,) if field.merge_key else ()
    return True, ()


def type_shape(kind: Type) -> Shape:
    """The shape of a type where no field says more: lists are atomic."""
    if isinstance(kind, Struct):
        return shape_of(kind)
    if isinstance(kind, ListOf):
        return Shape(items=ListShape(lambda: type_shape(kind.item)))
    if isinstance(kind, MapOf):
        return Shape(map=MapShape(element=lambda: type_shape(kind.value)))
    if isinstance(kind, Scalar):
        return _SCALARS[kind.kind]
    if isinstance(kind, Special):
        return _SPECIALS[kind.kind]
    raise TypeError(f"no shape for {kind!r}")
