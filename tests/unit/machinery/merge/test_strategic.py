from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.merge import strategic
from pilothouse.machinery.merge.element_order import order_after_deletions
from pilothouse.machinery.merge.strategic import UNTYPED, FieldPatchInfo, StrategicMergeError


class Struct:
    kind = "struct"

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: dict[str, FieldPatchInfo] = {}

    def field(self, name: str) -> FieldPatchInfo | None:
        return self.fields.get(name)


MERGE, REPLACE, RETAIN = frozenset({"merge"}), frozenset({"replace"}), frozenset({"retainKeys"})
ITEM = Struct("Item")
ITEM.fields = {
    "name": FieldPatchInfo(),
    "value": FieldPatchInfo(),
    "other": FieldPatchInfo(),
    "items": FieldPatchInfo(MERGE, "name", ITEM, is_list=True),
    "kept": FieldPatchInfo(MERGE | RETAIN, "name", ITEM, is_list=True),
    "keyless": FieldPatchInfo(MERGE, "", ITEM, is_list=True),
    "atomic": FieldPatchInfo(frozenset(), "", ITEM, is_list=True),
    "numbers": FieldPatchInfo(MERGE, "", UNTYPED, is_list=True),
    "plain": FieldPatchInfo(frozenset(), "", UNTYPED, is_list=True),
    "labels": FieldPatchInfo(),
    "child": FieldPatchInfo(schema=ITEM),
    "source": FieldPatchInfo(RETAIN, schema=ITEM),
    "whole": FieldPatchInfo(REPLACE, schema=ITEM),
}


def named(*names: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


def merge(document: Any, patch: Any) -> Any:
    before = copy.deepcopy(document)
    try:
        return strategic.apply(document, copy.deepcopy(patch), ITEM)
    finally:
        assert document == before


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({}, {}, {}),
        ({"value": "1"}, {"value": "2"}, {"value": "2"}),
        ({"value": "1"}, {"value": None}, {}),
        ({}, {"value": None}, {}),
        ({"value": "1"}, {"other": "2"}, {"value": "1", "other": "2"}),
        ({"labels": {"a": "1"}}, {"labels": {"b": "2", "a": None}}, {"labels": {"b": "2"}}),
        ({}, {"child": {"value": None, "other": "x", "items": [{"name": "a", "value": None}]}},
         {"child": {"other": "x", "items": [{"name": "a"}]}}),
        ({"child": {"value": "1"}}, {"child": {"child": {"other": "2"}}},
         {"child": {"value": "1", "child": {"other": "2"}}}),
        ({"value": "1"}, {"value": {"a": None, "b": 1}}, {"value": {"b": 1}}),
        ({"value": None}, {"value": {"a": 1}}, {"value": {"a": 1}}),
        ({"whole": {"value": "1"}}, {"whole": {"other": "2"}}, {"whole": {"other": "2"}}),
        ({"atomic": named("a")}, {"atomic": named("b")}, {"atomic": named("b")}),
        ({"plain": [1, 2]}, {"plain": [2]}, {"plain": [2]}),
    ],
)  # fmt: skip
def test_objects_and_scalars(document: Any, patch: Any, expected: Any) -> None:
    assert merge(document, patch) == expected


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": None}}, {"labels": {"b": None}}),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "delete", "b": "2"}}, {"labels": {}}),
        ({"value": "1", "other": "2"}, {"$patch": "replace", "value": "3"}, {"value": "3"}),
        ({"value": "1"}, {"$patch": "delete"}, {}),
        ({}, {"child": {"$patch": "delete", "value": "1"}}, {}),
        ({"value": "1"}, {"value": {"$patch": "delete"}}, {}),
        ({}, {"items": [{"name": "a", "$patch": "delete"}, {"name": "b", "child": {"$patch": "replace"}}]},
         {"items": [{"name": "b"}]}),
        ({"source": {"name": "a", "value": "1", "other": "2"}}, {"source": {"$retainKeys": ["value"], "value": "3"}},
         {"source": {"value": "3"}}),
        ({"source": {"name": "a"}}, {"source": {"$retainKeys": ["name"], "name": None}}, {"source": {}}),
        ({"kept": [{"name": "a", "value": "1"}]},
         {"kept": [{"name": "a", "other": "2", "$retainKeys": ["name", "other"]}]},
         {"kept": [{"name": "a", "other": "2"}]}),
    ],
)  # fmt: skip
def test_directives_of_objects(document: Any, patch: Any, expected: Any) -> None:
    assert merge(document, patch) == expected


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        (["a", "b", "c"], ["c", "x"], ["a", "b", "c", "x"]),
        (["a", "b"], ["x"], ["x", "a", "b"]),
        (["a", "b", "c"], ["c", "a"], ["b", "c", "a"]),
        (["a", "b", "c"], ["b"], ["a", "b", "c"]),
        ([], ["b", "a"], ["b", "a"]),
        (["a"], [], ["a"]),
        ([], [], []),
    ],
)
def test_order_of_keyed_lists(live: list[str], patch: list[str], expected: list[str]) -> None:
    assert merge({"items": named(*live)}, {"items": named(*patch)}) == {"items": named(*expected)}


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        ([1, 2, 3], [3, 4], [1, 2, 3, 4]),
        ([1, 2], [3], [3, 1, 2]),
        ([1, 2], [2, 2, 1], [2, 1]),
        ([1], [], [1]),
    ],
)
def test_lists_of_scalars_unite(live: list[int], patch: list[int], expected: list[int]) -> None:
    assert merge({"numbers": live}, {"numbers": patch}) == {"numbers": expected}


@pytest.mark.parametrize(
    ("live", "patch", "expected"),
    [
        (named("a", "b", value="1"), named("b", value="2"), [*named("a", value="1"), *named("b", value="2")]),
        (named("a", value="1"), [{"name": "a", "value": None}], named("a")),
        (named("a"), [{"name": "b", "value": None}], [{"name": "b", "value": None}, *named("a")]),
        (named("a"), [{"name": "b"}, {"name": "b", "value": "1"}], [{"name": "b", "value": "1"}, *named("a")]),
        (named("a", "b"), [{"name": "a", "$patch": "delete"}], named("b")),
        (named("a", "b", "a"), [{"name": "a", "$patch": "delete"}], named("b")),
        (named("a"), [{"name": "x", "$patch": "delete"}], named("a")),
        (named("a", "b"), [*named("c"), {"$patch": "replace"}], named("c")),
        (named("a", "b"), [{"$patch": "replace"}], []),
        (named(1), [{"name": "1"}], [{"name": "1"}, {"name": 1}]),
        (named("a", items=named("x")), [{"name": "a", "items": named("y")}], named("a", items=named("y", "x"))),
    ],
)  # fmt: skip
def test_keyed_items(live: list[Any], patch: list[Any], expected: list[Any]) -> None:
    assert merge({"items": live}, {"items": patch}) == {"items": expected}


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"numbers": [1, 2, 3]}, {"$deleteFromPrimitiveList/numbers": [2, 9]}, {"numbers": [1, 3]}),
        ({"plain": [1, 2, 3]}, {"$deleteFromPrimitiveList/plain": [2]}, {"plain": [1, 3]}),
        ({"numbers": [1, True]}, {}, {"numbers": [1, True]}),
        ({}, {"$deleteFromPrimitiveList/numbers": [2]}, {}),
        ({"numbers": [1]}, {"$deleteFromPrimitiveList/numbers": "1"}, {"numbers": [1]}),
        ({"numbers": [1]}, {"$deleteFromPrimitiveList/numbers": None}, {}),
        ({"numbers": [1]}, {"$deleteFromPrimitiveList/numbers": [1], "numbers": [2]}, {"numbers": [2]}),
    ],
)
def test_deleting_scalars(document: Any, patch: Any, expected: Any) -> None:
    assert merge(document, patch) == expected


@pytest.mark.parametrize(
    ("live", "order", "patch", "expected"),
    [
        (["a", "b", "c"], ["c", "a"], None, ["b", "c", "a"]),
        (["a", "b"], ["b", "x", "a"], ["x"], ["b", "x", "a"]),
        (["a", "b", "s"], ["b", "a"], ["b"], ["b", "a", "s"]),
        (None, ["b", "a"], ["b", "a"], ["b", "a"]),
        (["a", "b"], [], ["x"], ["a", "b", "x"]),
        (["a", "b"], ["zz"], None, ["a", "b"]),
        (None, ["a"], None, None),
    ],
)
def test_set_element_order(
    live: list[str] | None, order: list[str], patch: list[str] | None, expected: list[str] | None
) -> None:
    for field, make in (("items", lambda names: named(*names)), ("numbers", list)):
        document = {} if live is None else {field: make(live)}
        change = {f"$setElementOrder/{field}": make(order), **({} if patch is None else {field: make(patch)})}
        assert merge(document, change) == ({} if expected is None else {field: make(expected)})


def test_set_element_order_with_deletions() -> None:
    change = {
        "$setElementOrder/items": named(2, 3),
        "items": [{"name": 3}, {"name": 1, "$patch": "delete"}],
    }
    assert merge({"items": named(1, 2, 4)}, change) == {"items": named(2, 4, 3)}
    change["items"] = [{"name": 3}]
    assert merge({"items": named(1, 2, 4)}, change) == {"items": named(1, 2, 3, 4)}


def test_set_element_order_takes_over_a_new_list_without_directives() -> None:
    change = {"$setElementOrder/items": named("a"), "items": [*named("a"), {"name": "b", "$patch": "delete"}]}
    assert merge({}, change) == {"items": named("a")}


BAD = "invalid patch format of "


@pytest.mark.parametrize(
    ("document", "patch", "code", "message"),
    [
        ({"items": named("a")}, {"items": [{"value": "x"}]}, 500,
         "map: map[value:x] does not contain declared merge key: name"),
        ({"items": named("a")}, {"items": [{"$patch": "delete"}]}, 500,
         "map: map[$patch:delete] does not contain declared merge key: name"),
        ({"items": [{"value": "x"}]}, {"items": named("a")}, 500,
         "map: map[value:x] does not contain declared merge key: name"),
        ({"items": named("a")}, {"items": [{"name": "a", "$patch": "merge"}]}, 500,
         "merging lists cannot yet be specified in the patch"),
        ({"items": named("a")}, {"items": [{"name": "a", "$patch": "explode"}]}, 500,
         "unknown patch type: explode in map: map[$patch:explode name:a]"),
        ({"labels": {}}, {"labels": {"$patch": "merge", "more": "x"}}, 500,
         "unknown patch type: merge in map: map[$patch:merge more:x]"),
        ({"labels": {}}, {"labels": {"$patch": 5}}, 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        ({}, {"$patch": None}, 500, "unknown patch type: %!s(<nil>) in map: map[$patch:<nil>]"),
        ({"labels": {}}, {"labels": {"$retainKeys": "x", "y": "z"}}, 400, BAD + "retainKeys"),
        ({"source": {}}, {"source": {"$retainKeys": ["name"], "value": "z"}}, 400, BAD + "retainKeys"),
        ({}, {"$deleteFromPrimitiveList": [1]}, 400, BAD + "primitive list"),
        ({}, {"$setElementOrder": [1]}, 400, BAD + "setElementOrder list"),
        ({}, {"$setElementOrder/items": "x"}, 500, "expected a []interface {}, but received a string"),
        ({"items": "x"}, {"$setElementOrder/items": []}, 500, "expected a []interface {}, but received a string"),
        ({}, {"$setElementOrder/items": [], "items": None}, 500,
         "expected a []interface {}, but received a %!s(<nil>)"),
        ({}, {"$setElementOrder/items": named("a"), "items": [1]}, 500,
         "expected a map[string]interface {}, but received a int64"),
        ({}, {"$setElementOrder/items": ["x"], "items": [{"value": "x"}]}, 500,
         "expected a map[string]interface {}, but received a string"),
        ({}, {"$setElementOrder/items": [{"name": "a"}, "z"], "items": named("a")}, 500,
         "expected a map[string]interface {}, but received a string"),
        ({"items": named("a", "b")}, {"$setElementOrder/items": [{"name": "a"}, "z"]}, 500,
         "value for key 1 is not a map"),
        ({"numbers": [1]}, {"$setElementOrder/numbers": [1], "numbers": [9]}, 500,
         "The order in patch list:\n[9]\n doesn't match $setElementOrder list:\n[1]\n"),
        ({}, {"$setElementOrder/items": named("a"), "items": [*named("a"), {"$patch": "replace"}]}, 500,
         "The order in patch list:\n[map[name:a] map[$patch:replace]]\n doesn't match $setElementOrder list:\n"
         "[map[name:a]]\n"),
        ({"items": []}, {"$setElementOrder/items": named("a")}, 500, "no elements in any of the given slices"),
        ({"numbers": [[1]]}, {"numbers": [[2]]}, 422, "lists of lists are not supported"),
        ({"numbers": [1]}, {"numbers": ["a"]}, 500, "list element types are not identical: [[1] [a]]"),
        ({"keyless": named("a")}, {"keyless": named("b")}, 500, "cannot merge lists without merge key for struct"),
        ({"labels": {"a": {}}}, {"labels": {"a": {"b": "c"}}}, 500,
         "merging an object in json but data type is not struct, instead is: map"),
        ({"nope": {}}, {"nope": {"a": "b"}}, 500,
         'unable to find api field in struct Item for the json field "nope"'),
        ({"child": []}, {"child": [1]}, 500, "expected slice or array type, but got: struct"),
    ],
)  # fmt: skip
def test_errors(document: Any, patch: Any, code: int, message: str) -> None:
    with pytest.raises(StrategicMergeError) as caught:
        merge(document, patch)
    assert (caught.value.code, str(caught.value)) == (code, message)


@pytest.mark.parametrize(
    ("document", "patch", "rest"),
    [
        ({"items": named("a")}, {"$setElementOrder/items": named("a"), "items": named("a"), "x": 1}, {"x": 1}),
        ({"source": {"a": "1"}}, {"source": {"$retainKeys": ["b"], "b": "2"}}, {"source": {"b": "2"}}),
        ({"child": {"a": "1"}}, {"child": {"$patch": "replace", "b": "2"}}, {"child": {"b": "2"}}),
        ({"child": {"a": "1"}}, {"child": {"$patch": "delete"}}, {"child": {"$patch": "delete"}}),
        ({}, {"child": {"a": None, "b": {"$patch": "delete"}, "c": 1}}, {"child": {"c": 1}}),
        ({"items": named("a")}, {"items": [{"name": "a", "$patch": "delete"}]},
         {"items": [{"name": "a", "$patch": "delete"}]}),
    ],
)  # fmt: skip
def test_directives_are_used_up(document: Any, patch: Any, rest: Any) -> None:
    strategic.apply(document, patch, ITEM)
    assert patch == rest


def test_deep_new_values_do_not_exhaust_the_stack() -> None:
    deep: Any = {"leaf": None}
    for _ in range(5000):
        deep = {"child": deep}
    result = strategic.apply({}, {"child": deep}, ITEM)["child"]
    for _ in range(5000):
        result = result["child"]
    assert result == {}


def test_documents_too_deep_to_merge_are_refused(shallow_stack: None) -> None:
    document: Any = {}
    patch: Any = {"value": "x"}
    for _ in range(5000):
        document, patch = {"child": document}, {"child": patch}
    with pytest.raises(StrategicMergeError, match=r"^exceeded max depth$"):
        strategic.apply(document, patch, ITEM)


def test_untouched_parts_are_shared() -> None:
    document = {"child": {"items": named("a")}, "labels": {"x": "y"}}
    result = merge(document, {"labels": {"z": "1"}})
    assert result["child"] is document["child"]


NAMES = st.lists(st.sampled_from("abcdef"), unique=True, max_size=6)


@given(NAMES, NAMES)
def test_merged_lists_keep_both_orders(live: list[str], patch: list[str]) -> None:
    for field, make in (("items", lambda names: named(*names)), ("numbers", list)):
        merged = merge({field: make(live)}, {field: make(patch)})[field]
        names = [item["name"] if isinstance(item, dict) else item for item in merged]
        assert sorted(names) == sorted({*live, *patch})
        assert [name for name in names if name in patch] == patch
        assert [name for name in names if name not in patch] == [name for name in live if name not in patch]


@given(NAMES, NAMES)
def test_set_element_order_rules(live: list[str], order: list[str]) -> None:
    if not live:
        return
    merged = merge({"items": named(*live)}, {"$setElementOrder/items": named(*order)})["items"]
    names = [item["name"] for item in merged]
    assert sorted(names) == sorted(live)
    assert [name for name in names if name in order] == [name for name in order if name in live]
    assert [name for name in names if name not in order] == [name for name in live if name not in order]


VALUES: Any = st.recursive(
    st.none() | st.sampled_from(["x", "y"]),
    lambda inner: st.dictionaries(st.sampled_from(["value", "other", "child"]), inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.sampled_from(["value", "other", "child"]), VALUES, max_size=3)


@given(DOCUMENTS, DOCUMENTS)
def test_without_lists_it_is_a_merge_patch(document: Any, patch: Any) -> None:
    from pilothouse.machinery import merge_patch

    try:
        result = merge(document, patch)
    except StrategicMergeError as error:
        assert "not struct" in str(error)
        return
    assert result == merge_patch.apply(document, patch)


def order_by_shifting(live: list[Any], deleted: list[str]) -> list[Any]:
    """The plain way: take one out after the other; the gap closes and the last place keeps what it held."""
    row, length = live.copy(), len(live)
    for name in deleted:
        at = 0
        while at < length:
            if row[at]["name"] == name:
                row[at : length - 1] = row[at + 1 : length]
                length -= 1
            else:
                at += 1
    return row


@given(st.lists(st.sampled_from("abcd"), max_size=7), st.lists(st.sampled_from("abcde"), max_size=5))
def test_live_order_after_deletions(live: list[str], deleted: list[str]) -> None:
    items = [{"name": name, "at": at} for at, name in enumerate(live)]
    changes = [{"name": name, "$patch": "delete"} for name in deleted]
    assert order_after_deletions(items, changes, "name") == order_by_shifting(items, deleted)
