"""One schema with every kind of list and map, and values that fit it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct
from pilothouse.machinery.structured.shapes import Shape, shape_of

TEXT = Scalar("string")
NUMBER = Scalar("int32")


def _field(name: str, kind: Any, **more: Any) -> Field:
    field = Field(name, kind)
    field.omit_empty = True
    for key, value in more.items():
        setattr(field, key, value)
    return field


PORT = Struct(
    "test.v1.Port",
    lambda: [_field("port", NUMBER), _field("protocol", TEXT, default="TCP"), _field("note", TEXT)],
    go="v1.Port",
)
ITEM = Struct(
    "test.v1.Item",
    lambda: [
        _field("name", TEXT),
        _field("value", TEXT),
        _field("ports", ListOf(PORT), list_type="map", list_keys=("port", "protocol")),
        _field("inner", SELECTOR),
    ],
    go="v1.Item",
)
SELECTOR = Struct("test.v1.Selector", lambda: [_field("a", TEXT), _field("b", TEXT)], go="v1.Sel", map_type="atomic")
THING = Struct(
    "test.v1.Thing",
    lambda: [
        _field("kind", TEXT),
        _field("text", TEXT),
        _field("number", NUMBER),
        _field("flag", Scalar("bool")),
        _field("free", Special("JSON", "v1.JSON")),
        _field("raw", Special("RawExtension", "runtime.RawExtension")),
        _field("labels", MapOf(TEXT)),
        _field("whole", MapOf(TEXT), map_type="atomic"),
        _field("selector", SELECTOR),
        _field("loose", SELECTOR, map_type="granular"),
        _field("items", ListOf(ITEM), list_type="map", list_keys=("name",)),
        _field("old", ListOf(ITEM), patch=frozenset({"merge"}), merge_key="name"),
        _field("set", ListOf(TEXT), list_type="set"),
        _field("plain", ListOf(TEXT)),
        _field("next", THING),
    ],
    go="v1.Thing",
)

NAMES = st.sampled_from(["a", "b", "c", "d"])
SELECTORS = st.fixed_dictionaries({}, optional={"a": NAMES, "b": NAMES})
PORTS = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "note": NAMES}
    ),
    max_size=3,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"value": NAMES, "ports": PORTS, "inner": SELECTORS}),
    max_size=4,
    unique_by=lambda item: item["name"],
)
FREE = st.recursive(
    st.one_of(NAMES, st.integers(5, 9)),
    lambda inner: st.one_of(st.dictionaries(NAMES, inner, max_size=3), st.lists(inner, max_size=2)),
    max_leaves=4,
)
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "text": NAMES,
    "number": st.integers(5, 9),
    "flag": st.booleans(),
    "free": FREE,
    "raw": FREE,
    "labels": st.dictionaries(NAMES, NAMES, max_size=3),
    "whole": st.dictionaries(NAMES, NAMES, max_size=3),
    "selector": SELECTORS,
    "loose": SELECTORS,
    "items": ITEMS,
    "old": ITEMS,
    "set": st.lists(NAMES, max_size=4, unique=True),
    "plain": st.lists(NAMES, max_size=3),
}
_FLAT = st.fixed_dictionaries({}, optional=_FIELDS)
THINGS = st.fixed_dictionaries({}, optional={**_FIELDS, "next": _FLAT})


@pytest.fixture(scope="session")
def thing() -> Shape:
    return shape_of(THING)


@pytest.fixture(scope="session")
def things() -> st.SearchStrategy[dict[str, Any]]:
    return THINGS
