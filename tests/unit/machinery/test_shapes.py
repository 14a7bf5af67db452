"""Shapes of configuration files."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.machinery.shapes import DURATION, Struct, Text, unknown_fields, without_nulls

SHAPE = {"a": str, "b": [{"c": bool, "d": {"*": int}}], "e": [[str]]}


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ({}, []),
        ({"a": "x", "b": [{"c": True, "d": {"any": 1}}], "e": [["x"]]}, []),
        ({"a": None, "b": [None, {"c": None}]}, []),
        ({"x": 1, "b": [{}, {"y": {}}]}, ["x", "b[1].y"]),
    ],
)
def test_unknown_fields(value: Any, unknown: list[str]) -> None:
    assert unknown_fields(value, SHAPE) == unknown


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "cannot unmarshal number into Go struct field a of type string"),
        ({"b": {}}, "cannot unmarshal object into Go struct field b of type []struct"),
        ({"b": ["x"]}, "cannot unmarshal string into Go struct field b[0] of type struct"),
        ({"b": [{"c": "true"}]}, "cannot unmarshal string into Go struct field b[0].c of type bool"),
        ({"b": [{"d": {"x": True}}]}, "cannot unmarshal bool into Go struct field b[0].d.x of type int32"),
    ],
)
def test_wrong_types(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        unknown_fields(value, SHAPE)
    assert str(caught.value) == f"json: {message}"


def test_nulls_are_left_out_or_empty() -> None:
    value = {"a": None, "b": [None, {"c": None, "d": {"x": None, "y": 2}}], "e": [None, [None]], "other": [None]}
    assert without_nulls(value, SHAPE) == {"b": [{}, {"d": {"y": 2}}], "e": [[], [""]], "other": [None]}


NAMED = Struct("Top", {"a": Text("Letter"), "items": [Struct("Item", {"for": DURATION, "any": {"*": str}})]})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "cannot unmarshal number into Go struct field Top.a of type v2.Letter"),
        ({"items": {}}, "cannot unmarshal object into Go struct field Top.items of type []v2.Item"),
        ({"items": ["x"]}, "cannot unmarshal string into Go struct field Top.items of type v2.Item"),
        ({"items": [{"for": 1}]}, "cannot unmarshal number into Go value of type string"),
        (
            {"items": [{"any": []}]},
            "cannot unmarshal array into Go struct field Item.items.any of type map[string]string",
        ),
    ],
)
def test_wrong_types_of_what_has_names_in_go(value: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        unknown_fields(value, NAMED, "v2")
    assert str(caught.value) == f"json: {message}"
    assert unknown_fields({"items": [{"x": 1}]}, NAMED) == ["items[0].x"]
