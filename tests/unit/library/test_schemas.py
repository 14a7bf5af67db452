"""Schemas of dataclasses and pydantic models."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest

from pilothouse.library.schemas import schema_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Part:
    """A part."""

    name: str
    weight_grams: int = 5


@dataclass
class Whole:
    parts: list[Part]
    tags: dict[str, str]
    names: set[str]
    color: Color
    size: Literal["s", "m"] = "s"
    made: datetime | None = None
    ratio: float = 0.5
    open: bool = False
    anything: Any = None
    note: Annotated[str | None, "A note.", {"maxLength": 5}] = None
    renamed: str = field(default="x", metadata={"name": "apiURL", "description": "Where."})


def test_dataclasses() -> None:
    schema = schema_of(Whole)
    assert schema["required"] == ["parts", "tags", "names", "color"]
    assert "description" not in schema
    properties = schema["properties"]
    assert properties["parts"] == {
        "type": "array",
        "items": {
            "type": "object",
            "description": "A part.",
            "properties": {
                "name": {"type": "string"},
                "weightGrams": {"type": "integer", "format": "int64", "default": 5},
            },
            "required": ["name"],
        },
    }
    assert properties["tags"] == {"type": "object", "additionalProperties": {"type": "string"}}
    assert properties["names"] == {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    assert properties["color"] == {"type": "string", "enum": ["red", "blue"]}
    assert properties["size"] == {"type": "string", "enum": ["s", "m"], "default": "s"}
    assert properties["made"] == {"type": "string", "format": "date-time"}
    assert properties["open"] == {"type": "boolean", "default": False}
    assert properties["anything"] == {"x-kubernetes-preserve-unknown-fields": True}
    assert properties["note"] == {"type": "string", "description": "A note.", "maxLength": 5}
    assert properties["apiURL"] == {"type": "string", "default": "x", "description": "Where."}


@dataclass
class Tree:
    children: list[Tree]


@dataclass
class Unclear:
    value: int | str


@dataclass
class Odd:
    value: complex


@pytest.mark.parametrize("model", [Tree, Unclear, Odd, int])
def test_what_has_no_schema(model: type) -> None:
    with pytest.raises(TypeError):
        schema_of(model)


def test_a_schema_is_taken_as_it_is() -> None:
    assert schema_of({"type": "object"}) == {"type": "object"}


def test_pydantic() -> None:
    pydantic = pytest.importorskip("pydantic")
    part = pydantic.create_model("Part", name=(str, pydantic.Field(min_length=1)), weight=(int, 5))
    whole = pydantic.create_model(
        "Whole",
        __doc__="A whole.",
        parts=(list[part], ...),
        first=(part | None, None),
        count=(int, pydantic.Field(1, gt=0, alias="howMany")),
        kind=(Literal["whole"], "whole"),
        more=(dict[str, int], {}),
    )
    shown = {
        "type": "object",
        "properties": {"name": {"minLength": 1, "type": "string"}, "weight": {"default": 5, "type": "integer"}},
        "required": ["name"],
    }
    schema = schema_of(whole)
    assert schema["required"] == ["parts"]
    assert schema["description"] == "A whole."
    assert schema["properties"]["parts"] == {"type": "array", "items": shown}
    assert schema["properties"]["first"] == shown
    assert schema["properties"]["howMany"] == {
        "default": 1, "exclusiveMinimum": True, "minimum": 0, "type": "integer",
    }  # fmt: skip
    assert schema["properties"]["kind"] == {"enum": ["whole"], "default": "whole", "type": "string"}
    assert schema["properties"]["more"] == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "default": {},
    }
