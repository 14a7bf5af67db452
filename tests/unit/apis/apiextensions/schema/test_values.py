"""Value validation: what is refused, and in which words; the quick check and the explanation never disagree."""

from __future__ import annotations

import copy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pilothouse.apis.apiextensions.schema.checks import compile_check
from pilothouse.apis.apiextensions.schema.compiled import ObjectSchema
from pilothouse.apis.apiextensions.schema.reporting import field_errors
from pilothouse.apis.apiextensions.schema.values import explain
from pilothouse.machinery.ratcheting import CorrelatedObject


def errors_of(schema, value):
    found = [str(error) for error in field_errors(None, explain(schema, value, "x"))]
    assert compile_check(schema)(value) is not bool(found)
    return found


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, "a", []),
        ({"type": "string"}, 1, ['x: Invalid value: "integer": x in body must be of type string: "integer"']),
        ({"type": "integer"}, 1.0, []),
        (
            {"type": "integer"},
            1.5,
            [
                'x: Invalid value: "number": x in body must be of type integer: "number"',
                '<nil>: Invalid value: "": Checked value must be of type integer (default format) in x',
            ],
        ),
        ({"type": "number"}, 1, []),
        ({"type": "boolean"}, "true", ['x: Invalid value: "string": x in body must be of type boolean: "string"']),
        ({"type": "object"}, [], ['x: Invalid value: "array": x in body must be of type object: "array"']),
        ({"type": "string"}, None, ['x: Invalid value: "null": x in body must be of type string: "null"']),
        ({"type": "string", "nullable": True}, None, []),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            ['x: Invalid value: "boolean": x in body must be of type integer,string: "boolean"'],
        ),
        ({"type": "string", "maxLength": 2}, "äöü", ["x: Too long: may not be more than 2 bytes"]),
        ({"type": "string", "minLength": 2}, "a", ['x: Invalid value: "a": x in body should be at least 2 chars long']),
        ({"type": "string", "pattern": "^a+$"}, "b", ["x: Invalid value: \"b\": x in body should match '^a+$'"]),
        ({"type": "string", "enum": ["a", "b"]}, "c", ['x: Unsupported value: "c": supported values: "a", "b"']),
        ({"type": "integer", "enum": [1, 2]}, 3, ['x: Unsupported value: 3: supported values: "1", "2"']),
        (
            {"type": "string", "enum": ["a"], "nullable": True},
            None,
            ['x: Unsupported value: null: supported values: "a"'],
        ),
        ({"type": "integer", "maximum": 3}, 4, ["x: Invalid value: 4: x in body should be less than or equal to 3"]),
        (
            {"type": "integer", "maximum": 3, "exclusiveMaximum": True},
            3,
            ["x: Invalid value: 3: x in body should be less than 3"],
        ),
        (
            {"type": "number", "minimum": 1.5},
            1.25,
            ["x: Invalid value: 1.25: x in body should be greater than or equal to 1.5"],
        ),
        ({"type": "integer", "multipleOf": 3}, 7, ["x: Invalid value: 7: x in body should be a multiple of 3"]),
        ({"type": "number", "multipleOf": 0.1}, 0.3, []),
        (
            {"type": "integer", "multipleOf": 0.5, "maximum": 1.5},
            2,
            [
                '<nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in x',
                '<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in x',
                "x: Invalid value: 2: x in body should be less than or equal to 1.5",
            ],
        ),
        (
            {"type": "integer", "format": "int32"},
            1 << 40,
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x'],
        ),
        ({"type": "array", "maxItems": 1}, [1, 2], ["x: Too many: 2: must have at most 1 item"]),
        ({"type": "array", "minItems": 1}, [], ["x: Invalid value: 0: x in body should have at least 1 items"]),
        ({"type": "object", "maxProperties": 1}, {"a": 1, "b": 2}, ["x: Too many: 2: must have at most 1 item"]),
        ({"type": "object", "required": ["a"]}, {}, ["x.a: Required value"]),
        (
            {"type": "string", "format": "ipv4"},
            "1.2.3",
            ['x: Invalid value: "1.2.3": x in body must be of type ipv4: "1.2.3"'],
        ),
        ({"type": "string", "format": "nobody-knows"}, "anything", []),
        ({"type": "string", "format": "uri"}, [], []),
        (
            {"type": "array", "items": {"type": "string"}},
            ["a", 1],
            ['x[1]: Invalid value: "integer": x[1] in body must be of type string: "integer"'],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            {"k": "v"},
            ['x.k: Invalid value: "string": x.k in body must be of type integer: "string"'],
        ),
        (
            {"anyOf": [{"minimum": 5}, {"multipleOf": 3}]},
            4,
            [
                '<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)',
                "x: Invalid value: 4: x in body should be greater than or equal to 5",
            ],
        ),
        (
            {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
        ),
        (
            {"allOf": [{"minimum": 1}, {"maximum": 2}]},
            3,
            [
                "x: Invalid value: 3: x in body should be less than or equal to 2",
                '<nil>: Invalid value: "": "x" must validate all the schemas (allOf)',
            ],
        ),
        ({"not": {"minimum": 1}}, 3, ['<nil>: Invalid value: "": "x" must not validate the schema (not)']),
    ],
)
def test_errors(schema, value, expected):
    assert errors_of(schema, value) == expected


def test_the_root_has_no_path():
    schema = ObjectSchema({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "string"}}})
    assert [str(error) for error in schema.errors({})] == ["spec: Required value"]
    assert [error.field for error in schema.errors({"spec": 1})] == ["spec"]


def test_a_status_is_checked_alone():
    schema = ObjectSchema(
        {
            "type": "object",
            "required": ["spec"],
            "properties": {"status": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }
    )
    obj = {"status": {"n": "x"}}
    assert [error.field for error in schema.status_errors(obj, {})] == ["status.n"]
    assert schema.status_errors({"status": {"n": 1}}, {}) == []


KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 3}}},
}


@pytest.mark.parametrize(
    ("schema", "old", "new", "expected"),
    [
        ({"type": "integer", "maximum": 3}, 5, 5, []),
        ({"type": "integer", "maximum": 3}, 5, 6, ["a"]),
        (KEYED, [{"k": "x", "v": 9}], [{"k": "y", "v": 1}, {"k": "x", "v": 9}], []),
        (KEYED, [{"k": "x", "v": 9}], [{"k": "x", "v": 8}], ["a[0].v"]),
        ({"type": "array", "items": {"maximum": 3}}, [9], [9, 1], ["a[0]"]),
        ({"type": "array", "items": {"maximum": 3}}, [9], [9], []),
    ],
)
def test_what_did_not_change_is_forgiven(schema, old, new, expected):
    whole = ObjectSchema({"type": "object", "properties": {"a": schema}})
    assert [error.field for error in whole.errors({"a": new}, {"a": old})] == expected


def test_fields_without_a_schema_count_as_changed():
    correlation = CorrelatedObject({"a": {"b": 1}}, {"a": {"b": 1}}, {"type": "object", "properties": {"a": {}}})
    assert not correlation.is_unchanged()


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text("ab", max_size=3)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from("abc"), v, max_size=3), max_leaves=6
)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object"]),
        "nullable": st.booleans(),
        "maximum": st.integers(-3, 3),
        "minimum": st.floats(-3, 3),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$"]),
        "enum": st.lists(SCALARS, min_size=1, max_size=2),
        "maxItems": st.integers(0, 2),
        "required": st.lists(st.sampled_from("abc"), max_size=2),
        "format": st.sampled_from(["date", "int32", "float", "byte", "x"]),
    },
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda s: st.builds(
        lambda leaf, more: {**leaf, **more},
        LEAVES,
        st.fixed_dictionaries(
            {},
            optional={
                "items": s,
                "properties": st.dictionaries(st.sampled_from("abc"), s, max_size=2),
                "additionalProperties": s,
                "anyOf": st.lists(s, min_size=1, max_size=2),
                "oneOf": st.lists(s, min_size=1, max_size=2),
                "allOf": st.lists(s, min_size=1, max_size=2),
                "not": s,
            },
        ),
    ),
    max_leaves=5,
)


def test_an_enumeration_is_not_taken_for_one_that_is_gone():
    for number in range(100):
        assert not explain({"enum": [number, "x"]}, number, "x").errors


@given(SCHEMAS, VALUES)
@example({"type": "integer"}, 1.0000000001)
@example({"x-kubernetes-int-or-string": True}, 5e-324)
def test_check_and_explanation_agree(schema, value):
    before = copy.deepcopy(value)
    assert compile_check(schema)(value) is not bool(explain(schema, value, "x").errors)
    assert value == before


@given(SCHEMAS, VALUES)
def test_nothing_changed_means_nothing_wrong(schema, value):
    whole = {"type": "object", "properties": {"a": schema}}
    correlation = CorrelatedObject({"a": value}, {"a": value}, whole).key("a")
    assert correlation is not None
    if correlation.is_unchanged():
        assert not explain(schema, value, "a", correlation).errors


def test_alternatives_that_multiply_are_cut_short():
    items = {"type": "string", "anyOf": [{"pattern": f"^x{number}_*$"} for number in range(2_000)]}
    schema = ObjectSchema({"type": "object", "properties": {"a": {"type": "array", "items": items}}})
    assert schema.errors({"a": ["x1999"] * 10}) == []
    long = "x1999".ljust(2_304, "_")  # counts for ten
    errs = schema.errors({"a": [long] * 10_000})
    assert ["too many alternatives" in str(error) for error in errs] == [True]
    assert schema.errors({"a": ["x1999"] * 10}) == []
