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
    assert text(sort_along(result, list(merge_places(patch, DOCUMENT)))) == shown
