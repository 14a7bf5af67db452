from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import merge_patch


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {"a": {"b": None, "c": 2}}, {"a": {"c": 2}}),
        ({"a": None}, {"a": {"b": None}}, {"a": {}}),
        ({}, {"a": [{"b": None, "c": [None]}, None]}, {"a": [{"c": [None]}, None]}),
        ({"a": {"b": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {"b": 1}}, {}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}),
        ({"a": 1}, [{"b": None}], [{}]),
    ],
)
def test_apply(document: dict[str, Any], patch: Any, expected: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert merge_patch.apply(document, patch) == expected
    assert (document, patch) == before


@pytest.mark.parametrize("patch", [None, 5, "x", True])
def test_other_patches_are_refused(patch: Any) -> None:
    with pytest.raises(merge_patch.MergePatchError, match=r"^Invalid JSON Patch$"):
        merge_patch.apply({}, patch)


def test_untouched_parts_are_shared() -> None:
    document = {"a": {"x": {}}, "b": {"y": {}}}
    result = merge_patch.apply(document, {"a": {"z": 1}})
    assert result["b"] is document["b"]
    assert result["a"]["x"] is document["a"]["x"]


def test_depth_does_not_matter() -> None:
    document: dict[str, Any] = {}
    patch: dict[str, Any] = {"leaf": None}
    for _ in range(5000):
        document, patch = {"a": document}, {"a": patch}
    result = merge_patch.apply(document, patch)
    for _ in range(5000):
        result = result["a"]
    assert result == {}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


def by_the_book(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = by_the_book(result.get(key), value)
    return result


@given(OBJECTS, OBJECTS)
def test_agrees_with_the_rfc_where_lists_hold_no_objects(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((document, patch))
    result = merge_patch.apply(document, patch)
    assert (document, patch) == before
    if "[{" not in str(patch) and ", {" not in str(patch):
        assert result == by_the_book(document, patch)


@given(OBJECTS, OBJECTS)
def test_applying_twice_changes_nothing_more(document: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch.apply(document, patch)
    assert merge_patch.apply(once, patch).keys() == once.keys()
