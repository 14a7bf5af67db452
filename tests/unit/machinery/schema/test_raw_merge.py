"""Texts of raw values after a merge patch, as a running kube-apiserver has shown them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import merge_patch
from pilothouse.machinery.schema.raw_merge import merged

DATA = ("data",)


def texts_after(stored: bytes, patch: bytes) -> bytes | None:
    before = {"metadata": {"name": "a"}, "data": json.loads(stored)}
    obj = merge_patch.apply(before, json.loads(patch))
    return merged((DATA,), patch)(obj, {DATA: stored}).get(DATA)


@pytest.mark.parametrize(
    ("stored", "patch", "text"),
    [
        (rb'{"x":"\u0041","y":1.50}', rb'{"data":{"x":"\u0042"}}', rb'{"x":"\u0042","y":1.50}'),
        (rb'{"y":1.50, "x":"\u0041"}', rb'{"metadata":{"labels":{"a":"b"}}}', rb'{"y":1.50,"x":"\u0041"}'),
        (rb'{"y":1.50,"x":"\u0041"}', rb'{"data":{"z":"\u0042\/<"}}', rb'{"x":"\u0041","y":1.50,"z":"\u0042\/\u003c"}'),
        (rb'{"x":{"p":"\u0041","q":[1.0,2e3]}}', rb'{"data":{"x":{"p":"A"}}}', rb'{"x":{"p":"A","q":[1.0,2e3]}}'),
        (rb'{"x":1}', rb'{"data":{"x":{"k\u0041":"\u0042", "n":null}}}', rb'{"x":{"kA":"\u0042"}}'),
        (rb'{"x":1}', rb' {"data": ["\u0042", 1.50, {"b": "\u0043", "a": null}, null]} ',
         rb'["\u0042",1.50,{"b":"\u0043","a":null},null]'),
        (rb'{"x":1}', rb'{"data":{"y":[{"b":null,"a":1.0}]}}', rb'{"x":1,"y":[{"a":1.0}]}'),
        (rb'{"x":1,"y":null}', rb'{"data":{"x":null,"y":{"b":null}}}', rb'{"y":{}}'),
        (rb'{"x":1}', rb'{"data":"\u0042"}', rb'"\u0042"'),
    ],
)  # fmt: skip
def test_members_keep_the_text_they_came_with(stored: bytes, patch: bytes, text: bytes) -> None:
    assert texts_after(stored, patch) == text


def test_lists_above_a_raw_value_are_replaced_with_it() -> None:
    places = (("list", "*", "raw"),)
    patch = rb'{"list":[{"raw":{"b":"\u0041", "a":1.0}}]}'
    obj = json.loads(patch)
    assert merged(places, patch)(obj, {("list", "0", "raw"): b'{"c":1}'}) == {
        ("list", "0", "raw"): rb'{"a":1.0,"b":"\u0041"}'
    }


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "é<"]), below, max_size=3),
    max_leaves=12,
)


@given(_VALUES, _VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_any_text_says_what_the_object_says(stored: Any, patch: Any, ascii: bool, indent: Any) -> None:
    document = json.dumps({"data": patch}, ensure_ascii=ascii, indent=indent).encode()
    text = texts_after(json.dumps(stored).encode(), document)
    obj = merge_patch.apply({"data": stored}, {"data": patch})
    assert ("data" in obj) == (text is not None)
    if text is not None:
        assert json.loads(text) == obj["data"]
