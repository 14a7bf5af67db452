from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import labels
from pilothouse.machinery.field_errors import Path
from pilothouse.machinery.labels import EVERYTHING, NOTHING, Requirement, Selector, SelectorError, parse


@pytest.mark.parametrize(
    "text", ["x=a,y=b,z=c", "", "x!=a,y=b", "x=", "x= ", "x=,z= ", "x= ,z= ", "!x", "x>1", "x>1,z<5", "x==a"]
)
def test_text_survives(text: str) -> None:
    assert str(parse(text)) == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("x=a,a=x", "a=x,x=a"),
        ("\rx", "x"),
        ("foo  in\t (abc)", "foo in (abc)"),
        ("x notin\n (def,abc)", "x notin (abc,def)"),
        ("x in (abc,)", "x in (,abc)"),
        ("x in (abc,abc)", "x in (abc)"),
        ("x in ()", "x in ()"),
        ("x in (,)", "x in ()"),
        ("x in (a,,a,,)", "x in (,a)"),
        ("x in (,a)", "x in (,a)"),
        ("x notin (abc,,def),bar,z in (),w", "bar,w,x notin (,abc,def),z in ()"),
        ("a in (x,y,notin, z,in)", "a in (in,notin,x,y,z)"),
        ("in in (in)", "in in (in)"),
        ("notin=in", "notin=in"),
        ("this-is-a-dns.domain.com/key-with-dash", "this-is-a-dns.domain.com/key-with-dash"),
        ("0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)", "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)"),
        ("z!=a,z", "z!=a,z"),
        ("x > 5", "x>5"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    selector = parse(text)
    assert str(selector) == canonical
    assert parse(canonical) == selector


VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
IN = "unable to parse requirement: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("(", "found '(', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,=", "found '=', expected: identifier after ','"),
        ("!a b", "found 'b', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("x==a==b", "found '==', expected: ',' or 'end of string'"),
        ("!x=a", "found '=', expected: ',' or 'end of string'"),
        ("a b", IN + "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a (", IN + "found '(', expected: in, notin, =, ==, !=, gt, lt"),
        ("a ! b", IN + "found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", IN + "found '', expected: identifier"),
        ("!=a", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a=(b", IN + "found '(', expected: identifier"),
        ("a in", IN + "found '' expected: '('"),
        ("a in b", IN + "found 'b' expected: '('"),
        ("a notin(", IN + "found '', expected: ',', ')' or identifier"),
        ("a in (=", IN + "found '=', expected: ',', ')' or identifier"),
        ("a in (b", IN + "found '', expected: ',' or ')'"),
        ("a in (xyz abc)", IN + "found 'abc', expected: ',' or ')'"),
        ("a in (b,", IN + "found '', expected: ',', or identifier"),
        ("a in (b,=", IN + "found '=', expected: ',', or identifier"),
        ("x<a", IN + "values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("x>", IN + "values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the value must be an integer"),
        ("x>9223372036854775808", IN + 'values[0]: Invalid value: "9223372036854775808": '
         "for 'Gt', 'Lt' operators, the value must be an integer"),
        ("-app", IN + f'<nil>: Invalid value: "-app": {KEY}'),
        ("app=-web", IN + f'values[0][app]: Invalid value: "-web": {VALUE}'),
        ("x=a||y=b", IN + f'values[0][x]: Invalid value: "a||y": {VALUE}'),
        ("app in (b,-a,-c)", IN + f'[values[0][app]: Invalid value: "-a": {VALUE}, '
         f'values[1][app]: Invalid value: "-c": {VALUE}]'),
        ("x=a\0b", "found 'b', expected: ',' or 'end of string'"),
    ],
)  # fmt: skip
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_a_nul_ends_the_text() -> None:
    assert str(parse("x=a \0,y")) == "x=a"


def test_errors_name_the_given_path() -> None:
    with pytest.raises(SelectorError, match=r"^unable to parse requirement: spec\.selector: Invalid value: "):
        parse("-app", Path("spec", "selector"))
    with pytest.raises(SelectorError, match=r"^unable to parse requirement: spec\.selector\.values\[0\]\[a\]: "):
        parse("a=-b", Path("spec", "selector"))


@pytest.mark.parametrize(
    ("text", "held", "expected"),
    [
        ("", {"x": "y"}, True),
        ("x=y", {"x": "y"}, True),
        ("x=y,z=w", {"x": "y", "z": "w"}, True),
        ("x=y,z=w", {"x": "w", "z": "w"}, False),
        ("x!=y,z!=w", {"x": "z", "z": "a"}, True),
        ("x!=y,z!=w", {"x": "z", "z": "w"}, False),
        ("x!=y", {}, True),
        ("x=", {}, False),
        ("x=", {"x": ""}, True),
        ("notin=in", {"notin": "in"}, True),
        ("x", {"x": "z"}, True),
        ("x", {"y": "z"}, False),
        ("!x", {"y": "z"}, True),
        ("!x", {"x": "z"}, False),
        ("x in (a,b)", {"x": "b"}, True),
        ("x in (a,b)", {}, False),
        ("x in (,b)", {}, False),
        ("x notin (a,b)", {"x": "c"}, True),
        ("x notin (a,b)", {"x": "a"}, False),
        ("x notin (a,b)", {}, True),
        ("x>1", {"x": "2"}, True),
        ("x>1", {"x": "0"}, False),
        ("x>1", {"x": "v2"}, False),
        ("x>1", {"x": "9223372036854775808"}, False),
        ("x>1", {}, False),
        ("x<1", {"x": "0"}, True),
        ("x<1", {"x": "2"}, False),
        ("x<01", {"x": "00000000000000000000000"}, True),
        ("x=y,z,!w,v in (1,2)", {"x": "y", "z": "", "v": "2"}, True),
        ("x=y,z,!w,v in (1,2)", {"x": "y", "z": "", "v": "2", "w": ""}, False),
    ],
)
def test_matching(text: str, held: dict[str, str], expected: bool) -> None:
    assert parse(text).matches(held) is expected


def test_everything_and_nothing() -> None:
    assert EVERYTHING.empty and EVERYTHING.matches({"a": "b"}) and EVERYTHING.selectable
    assert not NOTHING.empty and not NOTHING.matches({}) and not NOTHING.selectable
    assert NOTHING.adding(Requirement("a", "exists")) is NOTHING
    assert EVERYTHING != NOTHING
    assert str(labels.from_labels({"b": "1", "a": "2"})) == "a=2,b=1"
    assert str(parse("b").adding(Requirement("a", "exists"))) == "a,b"


def test_exact_value() -> None:
    assert parse("a=b,c in (d),e in (f,g),h!=i").exact_value("a") == "b"
    assert parse("c in (d)").exact_value("c") == "d"
    assert parse("e in (f,g)").exact_value("e") is None
    assert parse("h!=i").exact_value("h") is None
    assert parse("h!=i").exact_value("x") is None


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({}, ""),
        ({"matchLabels": {"foo": "bar"}}, "foo=bar"),
        (
            {
                "matchLabels": {"foo": "bar"},
                "matchExpressions": [{"key": "baz", "operator": "In", "values": ["qux", "norf"]}],
            },
            "baz in (norf,qux),foo=bar",
        ),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": []}]}, "a"),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, "!a"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, "a notin (b)"),
    ],
)
def test_selector_objects(selector: dict[str, Any], text: str) -> None:
    assert str(labels.from_object(selector)) == text
    assert labels.format_object(selector) == (text or "<none>")


def test_selector_object_errors() -> None:
    assert labels.from_object(None) is NOTHING
    assert labels.format_object(None) == "<none>"
    with pytest.raises(SelectorError) as caught:
        labels.from_object({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]})
    assert str(caught.value) == '"Gt" is not a valid label selector operator'
    empty = {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}
    with pytest.raises(SelectorError) as caught:
        labels.from_object(empty)
    assert str(caught.value) == "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    assert labels.format_object(empty) == "<error>"
    with pytest.raises(SelectorError) as caught:
        labels.from_object({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]})
    assert str(caught.value) == 'values: Invalid value: ["x"]: values set must be empty for exists and does not exist'


def test_new_requirement_counts_and_operators() -> None:
    messages = [str(e) for e in labels.new_requirement("x", "unsupported")[1]]
    assert messages == [
        'operator: Unsupported value: "unsupported": supported values: "in", "notin", "=", "==", "!=", "gt", "lt", '
        '"exists", "!"'
    ]
    messages = [str(e) for e in labels.new_requirement("x", "=", ["bar", "foo"])[1]]
    assert messages == ['values: Invalid value: ["bar","foo"]: exact-match compatibility requires one single value']
    messages = [str(e) for e in labels.new_requirement("x", "gt", [])[1]]
    assert messages == ["values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required"]


def test_validation_of_objects() -> None:
    path = Path("spec", "selector")
    selector = {
        "matchLabels": {"a": "-b"},
        "matchExpressions": [
            {"key": "a", "operator": "In"},
            {"key": "a", "operator": "Exists", "values": ["x"]},
            {"key": "-", "operator": "Gt", "values": ["-"]},
        ],
    }
    assert [str(e) for e in labels.validate_object(selector, path)] == [
        f'spec.selector.matchLabels: Invalid value: "-b": {VALUE}',
        "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or "
        "'NotIn'",
        "spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or "
        "'DoesNotExist'",
        'spec.selector.matchExpressions[2].operator: Invalid value: "Gt": not a valid selector operator',
        f'spec.selector.matchExpressions[2].key: Invalid value: "-": {KEY}',
        f'spec.selector.matchExpressions[2].values[0]: Invalid value: "-": {VALUE}',
    ]
    assert labels.validate_object(None, path) == []
    ignored = labels.validate_object(selector, path, allow_invalid_values=True)
    assert not any("values[0]" in str(e) for e in ignored)


KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "1", "2", "x"])
HELD = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = st.one_of(
    st.builds(lambda k, op: Requirement(k, op), KEYS, st.sampled_from(["exists", "!"])),
    st.builds(lambda k, op, v: Requirement(k, op, (v,)), KEYS, st.sampled_from(["=", "==", "!="]), VALUES),
    st.builds(
        lambda k, op, v: Requirement(k, op, tuple(sorted(v))),
        KEYS, st.sampled_from(["in", "notin"]), st.sets(VALUES, min_size=1),
    ),
    st.builds(lambda k, op, v: Requirement(k, op, (v,)), KEYS, st.sampled_from(["gt", "lt"]), st.sampled_from("12")),
)  # fmt: skip


def plainly(requirement: Requirement, held: dict[str, str]) -> bool:
    key, operator, values = requirement
    match operator:
        case "exists":
            return key in held
        case "!":
            return key not in held
        case "=" | "==" | "in":
            return key in held and held[key] in values
        case "!=" | "notin":
            return key not in held or held[key] not in values
    if not held.get(key, "").isdigit():
        return False
    return int(held[key]) > int(values[0]) if operator == "gt" else int(held[key]) < int(values[0])


@given(st.lists(REQUIREMENTS, max_size=4), HELD)
def test_compiled_matching_agrees_with_the_definition(requirements: list[Requirement], held: dict[str, str]) -> None:
    selector = Selector(requirements)
    assert selector.matches(held) is all(plainly(r, held) for r in requirements)
    assert parse(str(selector)) == selector


@given(st.text(alphabet="ab=!<>(), \t\0-in", max_size=25))
def test_any_text_parses_or_says_why(text: str) -> None:
    try:
        selector = parse(text)
    except SelectorError:
        return
    assert parse(str(selector)) == selector
