from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import json_patch
from pilothouse.machinery.errors import StatusError
from pilothouse.machinery.json_patch import JsonPatchError, apply, decode


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def test_a_value_copied_into_itself() -> None:
    into = {"op": "copy", "from": "/a", "path": "/a/b/c"}
    once = apply({}, [add("/a", {"b": {}}), into])
    assert once == {"a": {"b": {"c": {"b": {}}}}}
    assert apply({}, [add("/a", {"b": {}}), into, into]) == {"a": {"b": {"c": once["a"]}}}


@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        ({"foo": "bar"}, [add("/baz", "qux")], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["bar", "baz"]}, [add("/foo/1", "qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"foo": ["bar"]}, [add("/foo/-", 1), add("/foo/1", 2)], {"foo": ["bar", 2, 1]}),
        ({"foo": ["a", "b"]}, [add("/foo/-1", "x")], {"foo": ["a", "b", "x"]}),
        ({"foo": ["a", "b"]}, [add("/foo/-3", "x")], {"foo": ["x", "a", "b"]}),
        ({"foo": "bar"}, [{"op": "remove", "path": "/foo"}], {}),
        ({"foo": ["a", "b"]}, [{"op": "remove", "path": "/foo/-1"}], {"foo": ["a"]}),
        ({"foo": ["a", "b"]}, [{"op": "remove", "path": "/foo/+0"}], {"foo": ["b"]}),
        ({"foo": 1}, [{"op": "replace", "path": "/foo", "value": 2}], {"foo": 2}),
        ({"foo": 1}, [{"op": "replace", "path": "/new", "value": 2}], {"foo": 1, "new": 2}),
        ({"foo": [1, 2]}, [{"op": "replace", "path": "/foo/-1", "value": 9}], {"foo": [1, 9]}),
        ({"foo": 1}, [{"op": "replace", "path": "", "value": {"a": 1}}], {"a": 1}),
        ({"foo": {"bar": "baz", "w": 1}, "q": {}}, [{"op": "move", "from": "/foo/w", "path": "/q/t"}],
         {"foo": {"bar": "baz"}, "q": {"t": 1}}),
        ({"foo": [1, 2, 3]}, [{"op": "move", "from": "/foo/0", "path": "/foo/2"}], {"foo": [2, 3, 1]}),
        ({"a": {"b": [1]}}, [{"op": "copy", "from": "/a/b", "path": "/c"}, add("/c/-", 2)],
         {"a": {"b": [1]}, "c": [1, 2]}),
        ({"a": {"b": [1]}}, [add("/a/x", 1), {"op": "copy", "from": "/a", "path": "/c"}, add("/a/b/-", 2)],
         {"a": {"b": [1, 2], "x": 1}, "c": {"b": [1], "x": 1}}),
        ({"a": 1}, [{"op": "copy", "from": "/none", "path": "/b"}], {"a": 1, "b": None}),
        ({"a": 1}, [{"op": "add", "path": "/b"}], {"a": 1, "b": None}),
        ({"a": 1}, [add("ignored/b", 2)], {"a": 1, "b": 2}),
        ({"a": 1}, [add("/", 2)], {"a": 1, "": 2}),
        ({"a~b": {}}, [add("/a~0b/c~1d", 2), add("/~01", 3)], {"a~b": {"c/d": 2}, "~1": 3}),
        ({"a": [1, {"b": 2}]}, [{"op": "test", "path": "/a", "value": [1, {"b": 2}]}], {"a": [1, {"b": 2}]}),
        ({"a": None}, [{"op": "test", "path": "/a", "value": None}, {"op": "test", "path": "/x"}], {"a": None}),
        ({"a": 1}, [{"op": "test", "path": "", "value": {"a": 1}}], {"a": 1}),
        ({"a": 1}, [], {"a": 1}),
        ([1], [add("/0", 0)], [0, 1]),
        ({"a": {}}, [add("/a/b", {"c": 1}), add("/a/b/d", 2)], {"a": {"b": {"c": 1, "d": 2}}}),
    ],
)  # fmt: skip
def test_apply(document: Any, operations: list[dict[str, Any]], expected: Any) -> None:
    before = copy.deepcopy((document, operations))
    assert apply(document, decode(operations)) == expected
    assert (document, operations) == before


@pytest.mark.parametrize(
    ("document", "operation", "message"),
    [
        ({}, add("/a/b", 1), 'add operation does not apply: doc is missing path: "/a/b": missing value'),
        ({"a": "text"}, add("/a/b", 1), 'add operation does not apply: doc is missing path: "/a/b": missing value'),
        ({"a": None}, add("/a/b", 1), 'add operation does not apply: doc is missing path: "/a/b": missing value'),
        ({}, add("", 1), 'add operation does not apply: doc is missing path: "": missing value'),
        ({}, {"op": "add", "value": 1}, "add operation failed to decode path: missing value"),
        ({"a": [1]}, add("/a/2", 1),
         "error in add for path: '/a/2': Unable to access invalid index: 2: invalid index referenced"),
        ({"a": [1]}, add("/a/-3", 1),
         "error in add for path: '/a/-3': Unable to access invalid index: -3: invalid index referenced"),
        ({"a": [1]}, add("/a/x", 1), "error in add for path: '/a/x': value was not a proper array index: 'x': "
         'strconv.Atoi: parsing "x": invalid syntax'),
        ({}, {"op": "remove", "path": "/x"},
         "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value"),
        ({"a": [1]}, {"op": "remove", "path": "/a/-"},
         "error in remove for path: '/a/-': strconv.Atoi: parsing \"-\": invalid syntax"),
        ({}, {"op": "remove", "path": "/x/y"},
         'remove operation does not apply: doc is missing path: "/x/y": missing value'),
        ({}, {"op": "replace", "path": "/x/y", "value": 1},
         "replace operation does not apply: doc is missing path: /x/y: missing value"),
        ({"a": [1]}, {"op": "replace", "path": "/a/1", "value": 1},
         "replace operation does not apply: doc is missing key: /a/1: missing value"),
        ({}, {"op": "replace", "path": "", "value": "x"},
         "replace operation value must be object or array: %!w(<nil>)"),
        ({}, {"op": "replace", "value": 1},
         "replace operation failed to decode path: operation missing path field: missing value"),
        ({}, {"op": "move", "from": "/x", "path": "/y"},
         "error in move for path: 'x': Unable to remove nonexistent key: x: missing value"),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"},
         "move operation does not apply: doc is missing destination path: /a/b: missing value"),
        ({}, {"op": "move", "path": "/y"},
         "move operation failed to decode from: operation, missing from field: missing value"),
        ({"a": 1}, {"op": "copy", "from": "/a", "path": "/b/c"},
         "copy operation does not apply: doc is missing destination path: /b/c: missing value"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 2}, "testing value /a failed: test failed"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1.0}, "testing value /a failed: test failed"),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}, "testing value /a failed: test failed"),
        ({"a": 1}, {"op": "test", "path": "/b", "value": 1}, "testing value /b failed: test failed"),
        ({"a": [1]}, {"op": "test", "path": "/a/3", "value": 1},
         "error in test for path: '/a/3': Unable to access invalid index: 3: invalid index referenced"),
        ({"a": 1}, {"op": "test", "path": 5}, "test operation failed to decode path: "
         "json: cannot unmarshal number into Go value of type string"),
        ({}, {"op": "merge", "path": "/a"}, "Unexpected kind: merge"),
        ({}, {"path": "/a"}, "Unexpected kind: unknown"),
        ({}, {"op": 5}, "Unexpected kind: unknown"),
    ],
)  # fmt: skip
def test_errors(document: Any, operation: dict[str, Any], message: str) -> None:
    before = copy.deepcopy(document)
    with pytest.raises(JsonPatchError) as caught:
        apply(document, [operation])
    assert str(caught.value) == message
    assert document == before


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({}, 400, "json: cannot unmarshal object into Go value of type jsonpatch.Patch"),
        ("x", 400, "json: cannot unmarshal string into Go value of type jsonpatch.Patch"),
        ([1], 400, "json: cannot unmarshal number into Patch.0 of type jsonpatch.Operation"),
        (
            [{}] * 10_001,
            413,
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
        ),
    ],
)
def test_patches_that_are_refused(patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        decode(patch)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_null_patches_do_nothing() -> None:
    assert decode(None) == []
    assert decode([None]) == [{}]


def test_copies_are_limited() -> None:
    document = {"a": "x" * 100}
    grow = [{"op": "copy", "from": "/a", "path": f"/b{n}"} for n in range(10)]
    with pytest.raises(JsonPatchError) as caught:
        apply(document, grow, max_copied=500)
    assert str(caught.value) == (
        "Unable to complete the copy, the accumulated size increase of copy is 510, exceeding the limit 500"
    )
    double = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(100)]
    with pytest.raises(JsonPatchError, match=r"^Unable to complete the copy"):
        apply({"a": [1, 2, 3, 4]}, double)


def test_deep_values_are_copied_and_counted() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    copied = apply({"a": deep}, [{"op": "copy", "from": "/a", "path": "/b"}])
    assert copied["b"] is not None
    with pytest.raises(JsonPatchError, match=r"^Unable to complete the copy"):
        apply({"a": deep}, [{"op": "copy", "from": "/a", "path": "/b"}], max_copied=1000)


def test_untouched_parts_are_shared() -> None:
    document = {"a": {"x": {}}, "b": {"y": {}}}
    result = apply(document, [add("/a/z", 1)])
    assert result["b"] is document["b"]
    assert result["a"]["x"] is document["a"]["x"]


def test_ten_thousand_operations_on_one_object() -> None:
    result = apply({"data": {}}, [add(f"/data/k{n}", n) for n in range(json_patch.MAX_OPERATIONS)])
    assert len(result["data"]) == 10_000


PATHS = st.sampled_from(["/a", "/a/b", "/a/0", "/a/-", "/b", "/b/c", "/b/-1", "", "/c/0/a"])
VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OPERATIONS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": PATHS},
    optional={"from": PATHS, "value": VALUES},
)


def plainly(document: Any, operations: list[dict[str, Any]]) -> Any:
    """One operation at a time, each on a deep copy: nothing can be shared by mistake."""
    for operation in operations:
        document = copy.deepcopy(apply(copy.deepcopy(document), [copy.deepcopy(operation)]))
    return document


@given(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), st.lists(OPERATIONS, max_size=6))
def test_sharing_never_shows(document: dict[str, Any], operations: list[dict[str, Any]]) -> None:
    before = copy.deepcopy((document, operations))
    try:
        expected = plainly(document, operations)
    except JsonPatchError as error:
        with pytest.raises(JsonPatchError) as caught:
            apply(document, operations)
        assert str(caught.value) == str(error)
    else:
        assert apply(document, operations) == expected
    assert (document, operations) == before
