from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.structured import field_sets as sets
from pilothouse.machinery.structured import paths
from pilothouse.machinery.structured.field_sets import FieldSet
from pilothouse.machinery.structured.paths import Path, PathError

STEPS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"n":"x"}', 'k:{"n":"x!"}', 'k:{"p":80}', 'k:{"p":443}', 'v:"s"'])
PATHS = st.lists(STEPS, min_size=1, max_size=4).map(tuple)
SETS = st.lists(PATHS, max_size=12).map(lambda paths: sets.from_paths(*paths))


def members(fields: FieldSet) -> set[Path]:
    return set(sets.paths_of(fields))


def test_stored_form() -> None:
    fields = sets.from_paths(("f:b", "f:x"), ("f:b",), ("f:a", "f:y"))
    assert fields == {"f:a": {"f:y": {}}, "f:b": {".": {}, "f:x": {}}}
    assert json.dumps(fields) == '{"f:a": {"f:y": {}}, "f:b": {".": {}, "f:x": {}}}'
    assert list(sets.paths_of(fields)) == [("f:b",), ("f:a", "f:y"), ("f:b", "f:x")]
    assert sets.from_paths(()) == {}


@given(SETS, SETS)
def test_algebra_is_that_of_sets_of_paths(a: FieldSet, b: FieldSet) -> None:
    assert members(sets.union(a, b)) == members(a) | members(b)
    assert members(sets.intersection(a, b)) == members(a) & members(b)
    assert members(sets.difference(a, b)) == members(a) - members(b)


@given(SETS, SETS)
def test_recursive_difference_takes_everything_below(a: FieldSet, b: FieldSet) -> None:
    gone = members(b)
    kept = {path for path in members(a) if not any(path[:n] in gone for n in range(1, len(path) + 1))}
    assert members(sets.recursive_difference(a, b)) == kept


@given(SETS, SETS, SETS)
def test_laws(a: FieldSet, b: FieldSet, c: FieldSet) -> None:
    assert sets.union(a, b) == sets.union(b, a)
    assert sets.union(a, sets.union(b, c)) == sets.union(sets.union(a, b), c)
    assert sets.intersection(a, sets.union(b, c)) == sets.union(sets.intersection(a, b), sets.intersection(a, c))
    assert sets.union(sets.difference(a, b), sets.intersection(a, b)) == a
    assert sets.difference(a, a) == {}


@given(SETS, SETS)
def test_results_are_in_stored_form(a: FieldSet, b: FieldSet) -> None:
    for result in (sets.union(a, b), sets.intersection(a, b), sets.difference(a, b), sets.recursive_difference(a, b)):
        again = sets.from_paths(*sorted(members(result)))
        assert json.dumps(result) == json.dumps(again)


TEXTS = st.lists(st.text('ab"\\\\ !#}é', max_size=4), min_size=2, max_size=6)


@given(TEXTS, st.sampled_from([paths.value_step, lambda text: paths.name_step("name", text)]))
def test_items_are_in_the_order_of_what_they_mean(texts: list[str], step: Callable[[str], str]) -> None:
    items: FieldSet = {step(text): {} for text in texts}
    assert list(sets.in_order(items)) == sorted(items, key=paths.order)


@given(SETS)
def test_reading_back(a: FieldSet) -> None:
    assert sets.read(json.loads(json.dumps(a))) == a
    assert json.dumps(sets.read(dict(reversed(a.items())))) == json.dumps(a)


@given(SETS)
def test_leaves(a: FieldSet) -> None:
    paths = members(a)
    inner = {path[:n] for path in paths for n in range(1, len(path))}
    assert members(sets.leaves(a)) == paths - inner


@given(SETS, PATHS)
def test_has(a: FieldSet, path: Path) -> None:
    assert sets.has(a, path) == (path in members(a))
    assert not sets.has(a, ())


@given(SETS)
def test_matching(a: FieldSet) -> None:
    assert sets.matching(a, {}) == a
    pattern = {"f:a": {"f:b": {}}, "f:b": {sets.ANY: {"f:c": {}}}}
    found = members(sets.matching(a, pattern))

    def matches(path: Path) -> bool:
        ways = [("f:a", "f:b"), ("f:b", path[1] if len(path) > 1 else "", "f:c")]
        return any(all(one == two for one, two in zip(path, way, strict=False)) for way in ways)

    assert found == {path for path in members(a) if matches(path)}


def test_nothing_is_changed_in_place() -> None:
    a, b = sets.from_paths(("f:a", "f:b")), sets.from_paths(("f:a",), ("f:a", "f:c"))
    before = json.dumps([a, b])
    sets.union(a, b), sets.difference(b, a), sets.intersection(a, b), sets.recursive_difference(b, a)
    assert json.dumps([a, b]) == before


@pytest.mark.parametrize(
    ("stored", "fields"),
    [
        (None, {}),
        ({}, {}),
        ({".": {}}, {}),
        ({"f:a": {".": {}}}, {"f:a": {}}),
        ({"f:a": None}, {"f:a": {}}),
        ({"x:later": {"f:a": {}}, "f:b": {}}, {"f:b": {}}),
        ({"f:b": {}, 'k:{"b":1, "a":2}': {}, "f:a": {}}, {"f:a": {}, "f:b": {}, 'k:{"a":2,"b":1}': {}}),
    ],
)
def test_reading(stored: object, fields: FieldSet) -> None:
    assert json.dumps(sets.read(stored)) == json.dumps(fields)


@pytest.mark.parametrize("stored", [[], "x", {"bad": {}}, {"f:a": 7}, {"k:[": {}}])
def test_reading_nonsense(stored: object) -> None:
    with pytest.raises(PathError):
        sets.read(stored)


def test_reading_depth_is_bounded() -> None:
    deep: FieldSet = {}
    for _ in range(600):
        deep = {"f:a": deep}
    with pytest.raises(PathError):
        sets.read(deep)
