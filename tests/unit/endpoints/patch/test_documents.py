"""How a patched document is shown: sorted where the patch went, else as it was."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pilothouse.endpoints.patch.documents import merge_places, operation_places, sort_along
from pilothouse.machinery import json_patch, merge_patch

DOCUMENT: dict[str, Any] = {"kind": "K", "b": {"z": 1, "a": {"y": 1, "x": 2}}, "list": [{"n": 1, "m": 2}]}


def text(value: Any) -> str:
    return orjson.dumps(value).decode()


@pytest.mark.parametrize(
    ("operations", "shown"),
    [
        ([], '{"b":{"z":1,"a":{"y":1,"x":2}},"kind":"K","list":[{"n":1,"m":2}]}'),
        ([{"op": "add", "path": "/b/q", "value": {"d": 1, "c": 2}}],
         '{"b":{"a":{"y":1,"x":2},"q":{"d":1,"c":2},"z":1},"kind":"K","list":[{"n":1,"m":2}]}'),
        ([{"op": "remove", "path": "/list/0/n"}], '{"b":{"z":1,"a":{"y":1,"x":2}},"kind":"K","list":[{"m":2}]}'),
        ([{"op": "copy", "from": "/b/a/x", "path": "/new"}],
         '{"b":{"a":{"x":2,"y":1},"z":1},"kind":"K","list":[{"n":1,"m":2}],"new":2}'),
    ],
)  # fmt: skip
def test_json_patch(operations: list[dict[str, Any]], shown: str) -> None:
    result = json_patch.apply(DOCUMENT, operations)
    assert text(sort_along(result, operation_places(operations))) == shown


def test_a_key_that_is_no_position_of_the_list_that_came_in_its_place() -> None:
    far = "-" + "1" * 5000
    operations: list[dict[str, Any]] = [
        {"op": "add", "path": "/b", "value": {far: 1}},
        {"op": "test", "path": f"/b/{far}", "value": 1},
        {"op": "replace", "path": "/b", "value": [1]},
    ]
    result = json_patch.apply(DOCUMENT, operations)
    assert text(sort_along(result, operation_places(operations))) == '{"b":[1],"kind":"K","list":[{"n":1,"m":2}]}'


def test_positions_that_are_counted_from_either_end() -> None:
    document = {"list": [{"b": {"d": 1, "c": 1}, "a": {"f": 1, "e": 1}}, {"z": 1, "y": 1}]}
    pointers = ["/list/-2/b/c", "/list/0/a/e", "/list/-9/b", "/list/0/b/d"]
    places = operation_places([{"op": "add", "path": pointer, "value": 1} for pointer in pointers])
    shown = '{"list":[{"a":{"e":1,"f":1},"b":{"c":1,"d":1}},{"z":1,"y":1}]}'
    assert text(sort_along(document, places)) == shown
    assert text(sort_along(document, places)) == shown, "places are left as they were"


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        ({"kind": "L"}, '{"b":{"z":1,"a":{"y":1,"x":2}},"kind":"L","list":[{"n":1,"m":2}]}'),
        ({"b": {"n": {"d": 1, "c": 2}}},
         '{"b":{"a":{"y":1,"x":2},"n":{"c":2,"d":1},"z":1},"kind":"K","list":[{"n":1,"m":2}]}'),
        ({"list": [{"q": 1, "p": {"b": 1, "a": 2}}]},
         '{"b":{"z":1,"a":{"y":1,"x":2}},"kind":"K","list":[{"p":{"a":2,"b":1},"q":1}]}'),
        # A list in the place of an object is not looked into.
        ({"b": [{"q": 1, "p": 2}]}, '{"b":[{"q":1,"p":2}],"kind":"K","list":[{"n":1,"m":2}]}'),
    ],
)  # fmt: skip
def test_merge_patch(patch: dict[str, Any], shown: str) -> None:
    result = merge_patch.apply(DOCUMENT, patch)
    assert text(sort_along(result, merge_places(patch, DOCUMENT))) == shown


def test_what_places_have_in_common_is_kept_once() -> None:
    """As paths, 100,000 of 300 steps each took hundreds of megabytes, and each was looked at for each key."""
    patch: dict[str, Any] = {f"k{number}": number for number in range(1_000)}
    for _ in range(100):
        patch = {"a": patch, "b": 1}
    count, below = 0, [merge_places(patch, {})]
    while below:
        tree = below.pop()
        count += len(tree)
        below += tree.values()
    assert count <= 2 * 100
    operations = [{"op": "add", "path": "/a" * 100 + f"/k{number}", "value": 1} for number in range(1_000)]
    trees, steps = [operation_places(operations)], 0
    while trees:
        tree = trees.pop()
        steps += len(tree)
        trees += tree.values()
    assert steps == 100 + 1_000
    tree, depth = operation_places([{"op": "add", "path": "/a" * 1_000_000, "value": 1}]), 0
    while tree:
        (tree,), depth = tree.values(), depth + 1
    assert depth <= 2_000
