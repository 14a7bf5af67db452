"""Validating, describing, comparing, merging and removing, on one schema with every kind of list and map."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.machinery.structured import (
    DEDUCED,
    SchemaMismatch,
    Shape,
    compare,
    describe,
    extract_items,
    merge,
    remove_items,
    to_field_set,
    validate,
)
from pilothouse.machinery.structured import field_sets as sets
from pilothouse.machinery.structured.field_sets import FieldSet
from pilothouse.machinery.structured.reconciliation import reconcile, with_named_fields

Things = st.SearchStrategy[dict[str, Any]]
relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"text": 1}, ".text: expected string, got &value.valueUnstructured{Value:1}"),
        ({"text": 2**63}, ".text: expected string, got &value.valueUnstructured{Value:9.223372036854776e+18}"),
        (
            {"text": {"b": None, "a": ["x", 1.5, True]}},
            '.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"a":'
            '[]interface {}{"x", 1.5, true}, "b":interface {}(nil)}}',
        ),
        ({"number": "x"}, ".number: expected numeric (int or float), got string"),
        ({"number": True}, ".number: expected numeric (int or float), got bool"),
        ({"number": []}, ".number: expected numeric (int or float), got []interface {}"),
        ({"flag": "yes"}, ".flag: expected boolean, got &{yes}"),
        ({"labels": "x"}, ".labels: expected map, got &{x}"),
        ({"labels": {"a": 7}}, ".labels.a: expected string, got &value.valueUnstructured{Value:7}"),
        ({"items": {"name": "x"}}, ".items: expected list, got &{map[name:x]}"),
        ({"nope": 1}, ".nope: field not declared in schema"),
        ({"items": [{"name": "a", "nope": 1}]}, '.items[name="a"].nope: field not declared in schema'),
        ({"items": [{"name": "a"}, {"name": "a"}]}, '.items: duplicate entries for key [name="a"]'),
        ({"set": ["a", "a"]}, '.set: duplicate entries for key [="a"]'),
        (
            {"items": [{"name": "a", "ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}]},
            '.items[name="a"].ports: duplicate entries for key [port=1,protocol="TCP"]',
        ),
        ({"items": [None]}, ".items: element 0: associative list with keys may not have a null element"),
        ({"items": ["x"]}, ".items: element 0: associative list with keys may not have non-map elements"),
        (
            {"items": [{"value": "x"}]},
            '.items: element 0: associative list with keys has an element that omits all key fields ["name"]'
            " (and doesn't have default values for any key fields)",
        ),
        ({"set": [{}]}, ".set: element 0: associative list without keys has an element that's a map type"),
        ({"set": [[]]}, ".set: element 0: not supported: associative list with lists as elements"),
        ({"set": [None]}, ".set: element 0: associative list without keys has an element that's an explicit null"),
        ({"plain": [1]}, ".plain[0]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"text": 1, "number": "x"},
            "errors:\n  .text: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .number: expected numeric (int or float), got string",
        ),
        ("x", "expected map, got &{x}"),
    ],
)
def test_mismatches(thing: Shape, value: Any, message: str) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        validate(thing, value)
    assert str(caught.value) == message


def test_of_very_many_mismatches_a_megabyte_is_told(thing: Shape) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        validate(thing, {"labels": {f"k{number}": {} for number in range(30_000)}})
    assert 1 << 20 <= len(str(caught.value)) < 2 << 20


def test_nulls_and_free_values_fit(thing: Shape) -> None:
    validate(thing, {"text": None, "items": None, "labels": None, "free": {"any": [1, {"x": None}]}, "raw": 7})
    validate(thing, {"items": [{"name": "a"}, {"name": "a"}]}, allow_duplicates=True)


@pytest.mark.parametrize(
    ("value", "claimed", "described"),
    [
        ({}, {}, {}),
        ({"text": "x"}, {"f:text": {}}, {".": {}, "f:text": {}}),
        ({"text": None}, {"f:text": {}}, {".": {}, "f:text": {}}),
        ({"loose": {"a": "x"}}, {"f:loose": {"f:a": {}}}, {".": {}, "f:loose": {".": {}, "f:a": {}}}),
        ({"selector": {"a": "x"}}, {"f:selector": {}}, {".": {}, "f:selector": {}}),
        ({"loose": {}}, {"f:loose": {}}, {".": {}, "f:loose": {}}),
        ({"labels": {"b": "", "a": ""}}, {"f:labels": {"f:a": {}, "f:b": {}}},
         {".": {}, "f:labels": {".": {}, "f:a": {}, "f:b": {}}}),
        ({"whole": {"a": ""}}, {"f:whole": {}}, {".": {}, "f:whole": {}}),
        ({"items": []}, {}, {".": {}, "f:items": {}}),
        ({"plain": []}, {"f:plain": {}}, {".": {}, "f:plain": {}}),
        ({"set": ["b", "a"]}, {"f:set": {'v:"a"': {}, 'v:"b"': {}}},
         {".": {}, "f:set": {".": {}, 'v:"a"': {}, 'v:"b"': {}}}),
        ({"items": [{"name": "a", "ports": [{"port": 1}]}]},
         {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:ports": {
             'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}},
         {".": {}, "f:items": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:ports": {".": {},
             'k:{"port":1,"protocol":"TCP"}': {".": {}, "f:port": {}}}}}}),
        ({"items": [{"name": "a", "value": "1"}, {"name": "a"}]}, {"f:items": {'k:{"name":"a"}': {}}},
         {".": {}, "f:items": {".": {}, 'k:{"name":"a"}': {}}}),
        ({"free": {"x": {"y": 1}, "l": [1]}}, {"f:free": {"f:l": {}, "f:x": {".": {}, "f:y": {}}}},
         {".": {}, "f:free": {".": {}, "f:l": {}, "f:x": {".": {}, "f:y": {}}}}),
        ({"raw": {"x": 1}}, {"f:raw": {}}, {".": {}, "f:raw": {}}),
    ],
)  # fmt: skip
def test_fields_of_values(thing: Shape, value: Any, claimed: FieldSet, described: FieldSet) -> None:
    assert to_field_set(thing, value) == claimed
    assert describe(thing, value) == described


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({"text": "a"}, {"text": "b"}, {}, {"f:text": {}}, {}),
        ({"text": "a"}, {"text": None}, {}, {"f:text": {}}, {}),
        ({"text": "a"}, {}, {"f:text": {}}, {}, {}),
        ({"labels": {"a": "1"}}, {"labels": {"b": "1"}}, {"f:labels": {"f:a": {}}}, {}, {"f:labels": {"f:b": {}}}),
        ({}, {"labels": {"b": "1"}}, {}, {}, {"f:labels": {".": {}, "f:b": {}}}),
        ({"labels": None}, {"labels": {"b": "1"}}, {}, {}, {"f:labels": {"f:b": {}}}),
        ({"labels": None}, {"labels": {}}, {}, {"f:labels": {}}, {}),
        ({"items": None}, {"items": []}, {}, {"f:items": {}}, {}),
        ({"items": None}, {"items": [{"name": "a"}]}, {}, {}, {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "1"}}, {}, {"f:whole": {}}, {}),
        ({"items": [{"name": "a"}, {"name": "b"}]}, {"items": [{"name": "b"}, {"name": "a"}]}, {}, {}, {}),
        ({"items": [{"name": "a", "value": "1"}]}, {"items": [{"name": "a", "value": "2"}]}, {},
         {"f:items": {'k:{"name":"a"}': {"f:value": {}}}}, {}),
        ({"set": ["a", "b"]}, {"set": ["b", "c"]}, {"f:set": {'v:"a"': {}}}, {}, {"f:set": {'v:"c"': {}}}),
        ({"set": ["a", "a"]}, {"set": ["a", "a"]}, {}, {}, {}),
        ({"set": ["a", "a"]}, {"set": ["a", "a", "a"]}, {}, {"f:set": {'v:"a"': {}}}, {}),
        ({"items": [{"name": "a", "value": "1"}]}, {"items": [{"name": "a"}, {"name": "a"}]},
         {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}, {},
         {"f:items": {'k:{"name":"a"}': {}}}),
        ({"items": [{"name": "a"}, {"name": "a"}]}, {"items": [{"name": "a"}]},
         {"f:items": {'k:{"name":"a"}': {}}}, {}, {"f:items": {'k:{"name":"a"}': {".": {}, "f:name": {}}}}),
        ({"free": {"x": 1}}, {"free": 5}, {"f:free": {"f:x": {}}}, {"f:free": {}}, {}),
        ({"free": 5}, {"free": {"x": 1}}, {}, {"f:free": {}}, {"f:free": {"f:x": {}}}),
        ({"free": 5}, {"free": [1]}, {}, {"f:free": {}}, {}),
        ({"free": None}, {"free": 5}, {}, {"f:free": {}}, {}),
        ({"free": True}, {"free": 1}, {}, {"f:free": {}}, {}),
    ],
)  # fmt: skip
def test_comparing(thing: Shape, old: Any, new: Any, removed: FieldSet, modified: FieldSet, added: FieldSet) -> None:
    found = compare(thing, old, new)
    assert (found.removed, found.modified, found.added) == (removed, modified, added)
    assert found.is_same == (not (removed or modified or added))


@pytest.mark.parametrize(
    ("live", "applied", "merged"),
    [
        ({"text": "a", "number": 1}, {"text": "b"}, {"text": "b", "number": 1}),
        ({"text": "a"}, {"text": None}, {"text": None}),
        ({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": None}, {"labels": {"a": "1"}}),
        ({"labels": {"a": "1"}}, {"labels": {}}, {"labels": {"a": "1"}}),
        ({"labels": None}, {"labels": {}}, {"labels": {}}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"b": "2"}}),
        ({"loose": {"a": "1"}}, {"loose": {"b": "2"}}, {"loose": {"a": "1", "b": "2"}}),
        ({"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}),
        ({"plain": ["a"]}, {"plain": None}, {"plain": None}),
        ({"set": ["a", "b", "c", "d"]}, {"set": ["c", "a", "x"]}, {"set": ["b", "c", "d", "a", "x"]}),
        ({"set": ["a", "b", "c"]}, {"set": ["x", "b"]}, {"set": ["a", "x", "b", "c"]}),
        ({"set": ["a"]}, {"set": None}, {"set": ["a"]}),
        ({"set": ["a", "a", "b"]}, {"set": ["a"]}, {"set": ["a", "b"]}),
        ({"items": [{"name": "a", "value": "1"}]}, {"items": [{"name": "a", "inner": {}}]},
         {"items": [{"name": "a", "value": "1", "inner": {}}]}),
        ({"old": [{"name": "a", "value": "1"}]}, {"old": [{"name": "b"}]},
         {"old": [{"name": "a", "value": "1"}, {"name": "b"}]}),
        ({"items": [{"name": "a", "ports": [{"port": 1, "protocol": "TCP"}]}]},
         {"items": [{"name": "a", "ports": [{"port": 1, "note": "n"}]}]},
         {"items": [{"name": "a", "ports": [{"port": 1, "protocol": "TCP", "note": "n"}]}]}),
        ({"free": {"a": 1}}, {"free": {"b": 2}}, {"free": {"a": 1, "b": 2}}),
        ({"free": {"a": 1}}, {"free": 5}, {"free": 5}),
        ({"raw": {"a": 1}}, {"raw": {"b": 2}}, {"raw": {"b": 2}}),
    ],
)  # fmt: skip
def test_merging(thing: Shape, live: Any, applied: Any, merged: Any) -> None:
    assert merge(thing, live, applied) == merged


def test_removing(thing: Shape) -> None:
    value = {"text": "t", "labels": {"a": "1", "b": "2"}, "items": [{"name": "a", "value": "v"}, {"name": "b"}]}
    gone = sets.from_paths(
        ("f:text",), ("f:labels", "f:a"), ("f:items", 'k:{"name":"a"}', "f:value"), ("f:items", 'k:{"name":"b"}')
    )
    assert remove_items(thing, value, gone) == {"labels": {"b": "2"}, "items": [{"name": "a"}]}
    assert extract_items(thing, value, gone) == {
        "text": "t", "labels": {"a": "1"}, "items": [{"value": "v"}, {"name": "b"}]
    }  # fmt: skip
    kept = extract_items(thing, value, gone, with_keys=True)
    assert kept["items"] == [{"name": "a", "value": "v"}, {"name": "b"}]


def test_what_loses_its_last_field_becomes_null(thing: Shape) -> None:
    gone = sets.from_paths(("f:labels", "f:a"))
    assert remove_items(thing, {"labels": {"a": "1"}, "text": "x"}, gone) == {"labels": None, "text": "x"}


def test_named_fields(thing: Shape) -> None:
    fields = sets.from_paths(("f:loose", "f:a"), ("f:labels", "f:x"), ("f:items", 'k:{"name":"a"}', "f:inner", "f:a"))
    closed = with_named_fields(fields, thing)
    assert closed == {
        "f:items": {".": {}, 'k:{"name":"a"}': {"f:inner": {".": {}, "f:a": {}}}},
        "f:labels": {".": {}, "f:x": {}},
        "f:loose": {".": {}, "f:a": {}},
    }


def test_reconciling(thing: Shape) -> None:
    now = sets.from_paths(("f:text",), ("f:selector",), ("f:items", 'k:{"name":"a"}'), ("f:free", "f:x", "f:y"))
    assert reconcile(now, thing) is now
    before = sets.from_paths(
        ("f:text",), ("f:selector", "f:a"), ("f:plain", 'v:"a"'), ("f:items", 'k:{"name":"a"}', "f:inner", "f:a")
    )
    assert reconcile(before, thing) == sets.from_paths(
        ("f:text",), ("f:selector",), ("f:plain",), ("f:items", 'k:{"name":"a"}', "f:inner")
    )


@relaxed
@given(st.data())
def test_merging_is_idempotent(thing: Shape, things: Things, data: st.DataObject) -> None:
    live, applied = data.draw(things), data.draw(things)
    once = merge(thing, live, applied)
    assert merge(thing, live, live) == live
    assert merge(thing, once, applied) == once
    assert merge(thing, once, once) == once


@relaxed
@given(st.data())
def test_merging_keeps_both_sides(thing: Shape, things: Things, data: st.DataObject) -> None:
    live, applied = data.draw(things), data.draw(things)
    merged = merge(thing, live, applied)
    validate(thing, merged)
    assert not compare(thing, applied, merged).removed
    changed = compare(thing, live, merged)
    assert not sets.difference(changed.modified, describe(thing, applied))
    assert set(changed.removed) <= {"f:" + key for key in applied}


@relaxed
@given(st.data())
def test_comparing_laws(thing: Shape, things: Things, data: st.DataObject) -> None:
    old, new = data.draw(things), data.draw(things)
    there, back = compare(thing, old, new), compare(thing, new, old)
    assert compare(thing, old, old).is_same
    assert there.added == back.removed
    assert there.modified == back.modified
    assert not sets.intersection(there.added, there.removed)
    assert not sets.intersection(there.added, there.modified)
    assert not sets.difference(there.added, describe(thing, new))


@relaxed
@given(st.data())
def test_removing_everything_claimed_leaves_nothing_of_it(thing: Shape, things: Things, data: st.DataObject) -> None:
    value = data.draw(things)
    claimed = with_named_fields(to_field_set(thing, value), thing)
    left = remove_items(thing, value, claimed)
    assert not left or not sets.intersection(to_field_set(thing, left), claimed)
    assert extract_items(thing, value, {}) in (None, {})


@relaxed
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    )
)
def test_any_value_fits_or_is_refused(thing: Shape, value: Any) -> None:
    validate(DEDUCED, value)
    try:
        validate(thing, value)
    except SchemaMismatch as error:
        assert error.errors


@pytest.mark.parametrize(
    "value", [{"labels": 5}, {"set": "a"}, {"items": {"a": 1}}, {"items": [{"name": "a", "ports": 7}]}]
)
def test_values_of_a_wrong_type_are_leaves(thing: Shape, value: Any) -> None:
    field = next(iter(value))
    described = describe(thing, value)[f"f:{field}"]
    assert described in ({}, {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:ports": {}}})
