"""Texts in which fields stand twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilothouse.apis import types
from pilothouse.machinery.schema.repetition import MOST_ERRORS, read_repeating

POD = types.struct("core.v1.Pod")


@pytest.mark.parametrize(
    ("text", "value", "errs"),
    [
        ('{"kind":"Pod"}', {"kind": "Pod"}, []),
        ('{"kind":"A","kind":"B"}', {"kind": "B"}, ['duplicate field "kind"']),
        ('{"kind":"A","kind":null}', {"kind": "A"}, ['duplicate field "kind"']),
        (
            '{"metadata":{"name":"a","labels":{"x":"1"}},"metadata":{"labels":{"y":"2"}}}',
            {"metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}},
            ['duplicate field "metadata"'],
        ),
        (
            '{"zz":1,"metadata":{"labels":{"a":"1","a":"2"}},"zz":2,"yy":{"a":1,"a":2},"spec":{"containers":[{"bad":1}]}}',
            {"zz": 2, "metadata": {"labels": {"a": "2"}}, "yy": {"a": 2}, "spec": {"containers": [{"bad": 1}]}},
            ['unknown field "zz"', 'duplicate field "metadata.labels.a"', 'unknown field "yy"',
             'unknown field "spec.containers[0].bad"'],
        ),
        (
            '{"spec":{"containers":[{"name":"a"}],"containers":[{"image":"b","image":"c"}]}}',
            {"spec": {"containers": [{"image": "c"}]}},
            ['duplicate field "spec.containers"', 'duplicate field "spec.containers[0].image"'],
        ),
        (
            '{"metadata":{"managedFields":[{"fieldsV1":{"a":1,"a":2}}]}}',
            {"metadata": {"managedFields": [{"fieldsV1": {"a": 2}}]}},
            [],
        ),
        ("[1]", [1], []),
    ],
)  # fmt: skip
def test_reading(text: str, value: Any, errs: list[str]) -> None:
    assert read_repeating(POD, text.encode()) == (value, errs)


def test_errors_are_told_once_and_not_without_end() -> None:
    text = "{" + ",".join(f'"x{n}":1,"x{n}":2' for n in range(1000)) + "}"
    reading = read_repeating(POD, text.encode())
    assert reading is not None
    assert reading[1] == [f'unknown field "x{n}"' for n in range(MOST_ERRORS)]


def test_texts_that_are_too_deep() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    assert read_repeating(POD, deep.encode()) is None
    assert json.loads("[]") == []
