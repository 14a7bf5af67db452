from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.cel.escaping import escape, unescape
from pilothouse.cel.kubernetes import base_environment
from pilothouse.cel.schema_types import Declarations
from pilothouse.cel.struct_types import BuiltInTypes
from pilothouse.machinery.schema.types import Field, ListOf, MapOf, Scalar, Special, Struct


def declare(schema: dict[str, Any], *, resource: bool = False) -> Any:
    return Declarations().declare(schema, resource=resource)


@pytest.mark.parametrize(
    ("schema", "wanted", "least", "most"),
    [
        ({"type": "string"}, "string", 2, 3145726),
        ({"type": "string", "maxLength": 10}, "string", 2, 40),
        ({"type": "string", "enum": ["a", "bcd"]}, "string", 2, 3),
        ({"type": "string", "format": "byte"}, "bytes", 2, 3145726),
        ({"type": "string", "format": "duration"}, "duration", 3, 32),
        ({"type": "string", "format": "date"}, "timestamp", 12, 12),
        ({"type": "string", "format": "date-time"}, "timestamp", 21, 32),
        ({"type": "integer"}, "int", 1, 0),
        ({"type": "number"}, "double", 1, 0),
        ({"type": "boolean"}, "bool", 4, 0),
        ({"x-kubernetes-int-or-string": True}, "dyn", 1, 3145726),
        ({"type": "array", "items": {"type": "integer"}}, "list(int)", 2, 1572863),
        ({"type": "array", "maxItems": 3, "items": {"type": "string"}}, "list(string)", 2, 3),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map(string, string)", 2, 393215),
    ],
)
def test_declarations(schema: dict[str, Any], wanted: str, least: int, most: int) -> None:
    declared = declare(schema)
    assert (str(declared.type), declared.min_size, declared.max_elements) == (wanted, least, most)


@pytest.mark.parametrize(
    "schema",
    [
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "array"},
        {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}},
    ],
)
def test_what_has_no_type_is_not_declared(schema: dict[str, Any]) -> None:
    assert declare(schema) is None


def test_required_fields_make_objects_bigger() -> None:
    properties = {"abc": {"type": "string"}, "d": {"type": "string", "default": "x"}}
    assert declare({"type": "object", "required": ["abc", "d"], "properties": properties}).min_size == 11


def test_resources_have_names_and_kinds() -> None:
    fields = declare({"type": "object", "properties": {}}, resource=True).fields
    assert sorted(fields) == ["apiVersion", "kind", "metadata"]
    assert {name: field.max_elements for name, field in fields["metadata"].fields.items()} == {
        "name": 1012,
        "generateName": 1008,
    }


def test_only_what_needs_it_is_converted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "plain": {"type": "object", "properties": {"a": {"type": "string"}}},
            "number": {"type": "number"},
            "wait": {"type": "string", "format": "duration"},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        },
    }
    convert = declare(schema).convert
    plain = {"plain": {"a": "b"}}
    assert convert(plain) is plain
    converted = convert({"number": 1, "wait": "2 days", "set": ["a"], "plain": plain})
    assert isinstance(converted["number"], float)
    assert converted["wait"].nanoseconds == 2 * 86400 * 10**9
    assert converted["plain"] is plain


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("plain", "plain"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("1a", None),
        ("", None),
        ("a b", None),
        ("é", None),
        ("int", "int"),
    ],
)
def test_escaping(name: str, wanted: str | None) -> None:
    assert escape(name) == wanted


@given(st.from_regex(r"[a-zA-Z_./-][a-zA-Z0-9_./-]{0,12}", fullmatch=True))
def test_escaping_is_undone(name: str) -> None:
    escaped = escape(name)
    assert escaped is not None
    assert escape(unescape(escaped) or "") == escaped


def evaluate(schema: dict[str, Any], rule: str, value: Any) -> Any:
    structs = Declarations()
    declared = structs.declare(schema, resource=False)
    assert declared is not None
    environment = base_environment().extend({"self": declared.type}, structs)
    seen = declared.convert(value) if declared.convert else value
    return environment.compile(rule).evaluate({"self": seen}).value


ITEM = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
KEYED = {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
SET = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"}
HOLDER = {
    "type": "object",
    "properties": {
        "a": SET, "b": SET, "x-y": {"type": "integer"}, "namespace": {"type": "string"},
        "gone": {"type": "string", "nullable": True},
        "l": {"type": "array", "items": {"type": "object", "properties": {"c": KEYED}}},
        "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "rule",
    [
        "self.a == self.b && self.a != [1]",
        "self.l[0].c == self.l[1].c",
        "(self.a + [9, 1]).size() == 3 && (self.l[0].c + [self.l[1].c[0]]).size() == 2",
        "self.x__dash__y == 4",
        "self.namespace == 'n' && self.__namespace__ == 'n'",
        "!has(self.gone) && !self.?gone.hasValue()",
        "type(self.map['k']) == null_type && 'k' in self.map",
    ],
)
def test_values_behave_as_their_schema_says(rule: str) -> None:
    value = {
        "a": [1, 2],
        "b": [2, 1],
        "l": [{"c": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}, {"c": [{"k": "y", "v": 2}, {"k": "x", "v": 1}]}],
        "x-y": 4,
        "namespace": "n",
        "gone": None,
        "map": {"k": None},
    }
    assert evaluate(HOLDER, rule, value) is True


def test_built_in_structs_are_declared_when_needed() -> None:
    inner = Struct("v1.Inner", lambda: [Field("name", Scalar("string"))], go="Inner")
    outer = Struct(
        "v1.Outer",
        lambda: [
            Field("items", ListOf(inner)),
            Field("labels", MapOf(Scalar("string"))),
            Field("when", Special("Time", "v1.Time")),
            Field("port", Special("IntOrString", "intstr.IntOrString")),
            Field("self", outer),
        ],
        go="Outer",
    )
    types = BuiltInTypes()
    environment = base_environment().extend({"object": types.declare(outer)}, types)
    assert types.find("v1.Inner") is None
    assert str(environment.compile("object.items.map(x, x.name)").type) == "list(string)"
    assert str(environment.compile("object.self.labels.a").type) == "string"
    assert str(environment.compile("object.when").type) == "timestamp"
    assert str(environment.compile("object.port").type) == "dyn"
