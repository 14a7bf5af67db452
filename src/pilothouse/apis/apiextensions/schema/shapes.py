"""How custom resources merge in a server-side apply: the schema's list and map types as shapes.

set, map, atomic lists      as declared; atomic without a declaration
granular and atomic maps    as declared; granular without a declaration
strings with a format       any scalar
int-or-string               anything, as it looks
preserve-unknown-fields     what the schema does not name is merged as it looks
"""

from __future__ import annotations

from typing import Any, Final

from pilothouse.apis import types
from pilothouse.apis.apiextensions.schema.nodes import NO_DEFAULT, Node
from pilothouse.machinery.structured.shapes import (
    BOOLEAN,
    DEDUCED,
    INT_OR_STRING,
    NUMERIC,
    STRING,
    UNTYPED,
    ListShape,
    MapShape,
    Shape,
    shape_of,
)

_SCALARS: Final = {
    "string": Shape(STRING), "boolean": Shape(BOOLEAN), "integer": Shape(NUMERIC), "number": Shape(NUMERIC),
}  # fmt: skip
_ANY_SCALAR: Final = Shape(UNTYPED)


def object_shape(node: Node) -> Shape:
    """The shape of a whole object: what its schema says, and what every object has."""

    def load() -> dict[str, Shape]:
        fields = {name: node_shape(child) for name, child in node.properties.items()}
        fields |= {"apiVersion": _SCALARS["string"], "kind": _SCALARS["string"]}
        fields["metadata"] = shape_of(types.struct("meta.v1.ObjectMeta"))
        return fields

    return Shape(map=_map_shape(node, load))


def node_shape(node: Node) -> Shape:
    """The shape of one place."""
    if node.int_or_string:
        return INT_OR_STRING
    if node.embedded:
        return _embedded_shape(node)
    if node.preserves and not node.properties and not node.type:
        return DEDUCED
    if node.type == "array":
        return Shape(items=_list_shape(node))
    if node.type == "object" or node.properties or node.additional is not None:
        return Shape(map=_map_shape(node, lambda: _fields(node)))
    if node.type == "string" and node.source.get("format", "") not in ("", "byte"):
        return _ANY_SCALAR
    return _SCALARS.get(node.type, DEDUCED)


def _fields(node: Node) -> dict[str, Shape]:
    return {name: node_shape(child) for name, child in node.properties.items()}


def _embedded_shape(node: Node) -> Shape:
    def load() -> dict[str, Shape]:
        fields = _fields(node)
        fields.setdefault("apiVersion", _SCALARS["string"])
        fields.setdefault("kind", _SCALARS["string"])
        fields["metadata"] = shape_of(types.struct("meta.v1.ObjectMeta"))
        return fields

    return Shape(map=_map_shape(node, load))


def _map_shape(node: Node, load: Any) -> MapShape:
    element = None
    if node.additional is not None:
        additional = node.additional
        element = lambda: node_shape(additional)  # noqa: E731
    elif node.preserves or node.closes_additional or (not node.properties and not node.embedded):
        element = lambda: DEDUCED  # noqa: E731
    return MapShape(load, element=element, defaults=lambda: _defaults(node), atomic=node.map_type == "atomic")


def _defaults(node: Node) -> dict[str, Any]:
    return {name: child.default for name, child in node.properties.items() if child.default is not NO_DEFAULT}


def _list_shape(node: Node) -> ListShape:
    items = node.items
    atomic = node.list_type not in ("set", "map")
    keys = node.list_keys if node.list_type == "map" else ()
    return ListShape(lambda: node_shape(items) if items is not None else DEDUCED, atomic=atomic, keys=keys)
