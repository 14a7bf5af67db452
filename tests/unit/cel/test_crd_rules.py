from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.cel.crd_field_paths import normalize_field_path
from pilothouse.cel.crd_rules import Rules, compile_rules, prepare_rules
from pilothouse.machinery.field_errors import FieldError, Path

ROOT = Path("spec", "validation", "openAPIV3Schema")


def spec(rules: list[dict[str, Any]] | None = None, **properties: Any) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "object", "properties": properties}
    if rules:
        inner["x-kubernetes-validations"] = rules
    return {"type": "object", "properties": {"spec": inner}}


def ruled(kind: dict[str, Any], rule: str, **more: Any) -> dict[str, Any]:
    return {**kind, "x-kubernetes-validations": [{"rule": rule, **more}]}


INTEGER: dict[str, Any] = {"type": "integer"}
TEXT: dict[str, Any] = {"type": "string"}


def shown(errs: list[FieldError]) -> list[str]:
    return [str(error) for error in errs]


def made(schema: dict[str, Any]) -> Rules:
    rules, errs = compile_rules(schema, ROOT)
    assert not errs, shown(errs)
    assert rules is not None
    return rules


@pytest.mark.parametrize(("value", "kind"), [("x", "string"), (True, "bool"), ([], "[]interface {}"), (2.0, "float64")])
def test_numbers_that_an_older_schema_let_be_something_else(value: Any, kind: str) -> None:
    rules = made(spec([{"rule": "self.a > 5"}, {"rule": "{'k': self.a} == {'k': self.a}"}], a=INTEGER))
    errs = rules.validate({"spec": {"a": value}}, None)
    why = f"invalid data, expected int, got {kind} evaluating rule:"
    assert [why in text for text in shown(errs)] == [True, True]
    if kind != "float64":
        rules = made(spec([{"rule": "self.a > 5.0"}], a={"type": "number"}))
        assert f"expected float, got {kind} evaluating" in shown(rules.validate({"spec": {"a": value}}, None))[0]


def test_a_schema_without_rules_has_none() -> None:
    assert compile_rules(spec(a=INTEGER), ROOT) == (None, [])


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        (spec(a=ruled(INTEGER, "self > 5", message=" too small ")), {"a": 3}, 'spec.a: Invalid value: 3: too small'),
        (spec(a=ruled(INTEGER, "self > 5")), {"a": 3}, "spec.a: Invalid value: 3: failed rule: self > 5"),
        (spec([{"rule": "self.a > 5"}], a=INTEGER), {"a": 3}, "spec: Invalid value: failed rule: self.a > 5"),
        (spec([{"rule": "self.a > 5", "reason": "FieldValueForbidden", "fieldPath": ".a", "message": "no"}], a=INTEGER),
         {"a": 3}, "spec.a: Forbidden: no"),
        (spec([{"rule": "self.a > 5", "reason": "FieldValueRequired", "fieldPath": ".a", "message": "no"}], a=INTEGER),
         {"a": 3}, "spec.a: Required value: no"),
        (spec([{"rule": "self.a > 5", "reason": "FieldValueDuplicate", "fieldPath": ".a"}], a=INTEGER),
         {"a": 3}, "spec.a: Duplicate value"),
        (spec(a=ruled(INTEGER, "self > 5", messageExpression="'%d is few'.format([self])")), {"a": 3},
         "spec.a: Invalid value: 3: 3 is few"),
        (spec(a=ruled(INTEGER, "self > 5", message="m", messageExpression="['x'][9]")), {"a": 3},
         "spec.a: Invalid value: 3: m"),
        (spec(a=ruled(INTEGER, "self > 5", message="m", messageExpression="'a\\nb'")), {"a": 3},
         "spec.a: Invalid value: 3: m"),
        (spec([{"rule": "self.a > 5"}], a=INTEGER), {},
         'spec: Invalid value: "object": no such key: a evaluating rule: self.a > 5'),
        (spec(a=ruled({"x-kubernetes-int-or-string": True}, "self > 5")), {"a": "x"},
         "spec.a: Invalid value: \"\": 'no such overload': call arguments did not match a supported operator, function"
         " or macro signature for rule: self > 5"),
        (spec(a={"type": "array", "maxItems": 5, "items": ruled(INTEGER, "self > 5")}), {"a": [9, 1]},
         "spec.a[1]: Invalid value: 1: failed rule: self > 5"),
        (spec(a={"type": "object", "maxProperties": 5, "additionalProperties": ruled(INTEGER, "self > 5")}),
         {"a": {"k": 1}}, "spec.a[k]: Invalid value: 1: failed rule: self > 5"),
        (spec([{"rule": "self.a + b'x' == b''"}], a={**TEXT, "format": "byte", "maxLength": 9}), {"a": "/w=="},
         'spec: Invalid value: "object": Invalid byte formatted string /w==: illegal base64 data at input byte 0'
         " evaluating rule: self.a + b'x' == b''"),
        ({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name != 'bad'"}]}, None,
         "<nil>: Invalid value: failed rule: self.metadata.name != 'bad'"),
    ],
)  # fmt: skip
def test_errors(schema: dict[str, Any], value: Any, wanted: str) -> None:
    obj = {"metadata": {"name": "bad"}, "spec": value}
    assert shown(made(schema).validate(obj, None)) == [wanted]


def test_null_and_absent_values_are_not_looked_at() -> None:
    rules = made(spec(a=ruled(INTEGER, "self > 5")))
    assert rules.validate({"spec": {"a": None}}, None) == []
    assert rules.validate({"spec": None}, None) == []
    assert rules.validate({}, None) == []


def test_transition_rules_need_an_old_value() -> None:
    rules = made(spec(a=ruled(INTEGER, "self >= oldSelf", message="may not shrink")))
    assert rules.validate({"spec": {"a": 1}}, None) == []
    assert rules.validate({"spec": {"a": 1}}, {"spec": {}}) == []
    assert rules.validate({"spec": {"a": 2}}, {"spec": {"a": 1}}) == []
    assert shown(rules.validate({"spec": {"a": 1}}, {"spec": {"a": 2}})) == ["spec.a: Invalid value: 1: may not shrink"]


def test_optional_old_values_are_seen_also_when_absent() -> None:
    rule = "oldSelf.hasValue() ? self == oldSelf.value() : self == 'new'"
    rules = made(spec(a=ruled(TEXT, rule, optionalOldSelf=True, message="bad")))
    assert rules.validate({"spec": {"a": "new"}}, None) == []
    assert shown(rules.validate({"spec": {"a": "old"}}, None)) == ['spec.a: Invalid value: "old": bad']
    assert rules.validate({"spec": {"a": "old"}}, {"spec": {"a": "old"}}) == []


def test_items_of_map_lists_are_correlated_by_key() -> None:
    item = ruled({"type": "object", "properties": {"n": TEXT, "p": INTEGER}}, "self.p == oldSelf.p", message="fixed")
    schema = spec(
        l={"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
    )
    rules = made(schema)
    old = {"spec": {"l": [{"n": "x", "p": 1}, {"n": "y", "p": 2}]}}
    assert rules.validate({"spec": {"l": [{"n": "y", "p": 2}, {"n": "z", "p": 9}]}}, old) == []
    errs = rules.validate({"spec": {"l": [{"n": "y", "p": 3}]}}, old)
    assert shown(errs) == ["spec.l[0]: Invalid value: fixed"]


def test_errors_of_unchanged_values_become_warnings() -> None:
    rules = made(spec(a=ruled(INTEGER, "self < 3", message="low"), b=INTEGER))
    warnings: list[str] = []
    old = {"spec": {"a": 8, "b": 1}}
    assert rules.validate({"spec": {"a": 8, "b": 2}}, old, warnings=warnings) == []
    assert warnings == ["spec.a: Invalid value: 8: low"]
    assert shown(rules.validate({"spec": {"a": 7}}, old)) == ["spec.a: Invalid value: 7: low"]


def test_what_passed_before_is_not_evaluated_again_but_what_failed_is() -> None:
    rules = made(spec(a=ruled(INTEGER, "self < 3", message="low")))
    assert rules.validate({"spec": {"a": 1}}, None, budget=100) == []
    assert rules.validate({"spec": {"a": 1}}, None, budget=0) == []
    for _ in range(2):
        assert len(rules.validate({"spec": {"a": 9}}, None)) == 1
    assert len(rules.validate({"spec": {"a": 2}}, None, budget=0)) == 1


def test_the_budget_ends_validation() -> None:
    rules = made(spec(a=ruled(INTEGER, "self < 3 && self < 4"), b=ruled(INTEGER, "self < 3")))
    errs = rules.validate({"spec": {"a": 1, "b": 1}}, None, budget=3)
    message = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert shown(errs) == [f'spec.a: Invalid value: "integer": {message}']


def test_a_rule_beyond_the_limit_of_one_call_ends_validation() -> None:
    rule = "self.all(x, self.all(y, x + y >= 0))"
    rules = prepare_rules(spec(l=ruled({"type": "array", "items": INTEGER}, rule)))
    assert rules is not None
    errs = rules.validate({"spec": {"l": list(range(3000))}}, None)
    assert shown(errs) == [
        "spec.l: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation"
        f" rules will be run due to call cost exceeds limit for rule: {rule}"
    ]


def test_rules_in_all_of_apply_to_the_same_value() -> None:
    part = {"properties": {"a": {"x-kubernetes-validations": [{"rule": "self > 5", "message": "low"}]}}}
    rules = prepare_rules({"type": "object", "properties": {"a": INTEGER}, "allOf": [part]})
    assert rules is not None
    assert shown(rules.validate({"a": 1}, None)) == ["a: Invalid value: 1: low"]


WHERE = "spec.validation.openAPIV3Schema.properties[spec].properties[a]"
SHOWN = '{"Rule":%s,"Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}'
TRY = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (ruled(INTEGER, "other < 1"),
         [f"{WHERE}.x-kubernetes-validations[0].rule: Invalid value: " + SHOWN % '"other \\u003c 1"'
          + ": compilation failed: ERROR: <input>:1:1: undeclared reference to 'other' (in container '')"
          "\n | other < 1\n | ^"]),
        (ruled(INTEGER, "self + 1"),
         [f"{WHERE}.x-kubernetes-validations[0].rule: Invalid value: " + SHOWN % '"self + 1"'
          + ": cel expression must evaluate to a bool"]),
        (ruled(INTEGER, "int('x') == self"),
         [f"{WHERE}.x-kubernetes-validations[0].rule: Invalid value: " + SHOWN % "\"int('x') == self\""
          + ": program instantiation failed: type conversion error from 'string' to 'int'"]),
        (ruled(INTEGER, "self == 1", optionalOldSelf=True),
         [f"{WHERE}.x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not"
          " used in rule"]),
        ({"type": "array", "maxItems": 3, "items": ruled(INTEGER, "self == oldSelf")},
         [f'{WHERE}.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on'
          f" the uncorrelatable portion of the schema within {WHERE}"]),
        (ruled({"type": "array", "items": TEXT}, "self.all(x, self.all(y, x == y))"),
         [f"{WHERE}.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more"
          f" than 100x {TRY}",
          f"{WHERE}.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding"
          " cost limit for entire OpenAPIv3 schema",
          "spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire"
          f" OpenAPIv3 schema exceeds budget by factor of more than 100x {TRY}"]),
    ],
)  # fmt: skip
def test_refused_definitions(schema: dict[str, Any], wanted: list[str]) -> None:
    rules, errs = compile_rules(spec(a=schema), ROOT)
    assert rules is None
    assert shown(errs) == wanted


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (".a", "a"),
        (".m.key", "m[key]"),
        (".m['k.e']", "m[k.e]"),
        (".b.c", "b.c"),
        ("['b'].c", "b.c"),
        (".z", None),
        ("a", None),
        (".a[0]", None),
        (".b..c", None),
        (".b['c", None),
        (".", None),
    ],
)
def test_field_paths(path: str, wanted: str | None) -> None:
    schema = {
        "properties": {
            "a": INTEGER,
            "m": {"additionalProperties": TEXT},
            "b": {"properties": {"c": TEXT}},
        }
    }
    assert normalize_field_path(path, schema) == wanted


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "l"]), inner, max_size=3),
    max_leaves=6,
)
ANY_RULES = made(
    spec(
        [{"rule": "!has(self.a) || self.a > 0"}],
        a=ruled(INTEGER, "self > 0"),
        b=ruled(TEXT, "self.size() < 2"),
        l={"type": "array", "maxItems": 3, "items": ruled(INTEGER, "self > 1")},
    )
)


@given(VALUES, VALUES)
def test_objects_of_any_shape_are_validated_without_a_crash(value: Any, old: Any) -> None:
    for error in ANY_RULES.validate({"spec": value}, {"spec": old}):
        assert str(error)
