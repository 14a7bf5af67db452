"""Texts of raw values."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis import types
from pilothouse.machinery.schema.raw import as_sent, as_stored, compacted, embed, raw_places, read_texts, written_anew

PARAMETERS = ("spec", "devices", "config", "*", "opaque", "parameters")


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("core.v1.Pod", ()),
        ("apps.v1.ControllerRevision", (("data",),)),
        ("resource.v1.DeviceClass", (("spec", "config", "*", "opaque", "parameters"),)),
    ],
)
def test_places(name: str, places: tuple[tuple[str, ...], ...]) -> None:
    assert raw_places(types.struct(name)) == places


def test_claims_have_raw_values_in_spec_and_status() -> None:
    places = raw_places(types.struct("resource.v1.ResourceClaim"))
    assert PARAMETERS in places
    assert ("status", "devices", "*", "data") in places


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b'{"data": {"a": [1, 2]}, "x": {}}', {("data",): b'{"a": [1, 2]}'}),
        (b'{"x":{"data":1},"data":"\\"}{<"}', {("data",): b'"\\"}{\\u003c"'}),
        (b' { "data" :\n{ "a" :\n1 } } ', {("data",): b'{ "a" : 1 }'}),
        (b"{}", {}),
        (b"[1]", {}),
        (b'{"items":[{"data":1},{"data":null},7]}', {("items", "0", "data"): b"1", ("items", "1", "data"): b"null"}),
    ],
)
def test_reading(data: bytes, texts: Any) -> None:
    assert read_texts(data, (("data",), ("items", "*", "data"))) == texts


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_any_value_is_found_as_it_stands(raw: Any, other: Any, indent: Any, ascii: bool) -> None:
    text = json.dumps({"other": other, "data": raw, "after": [other]}, indent=indent, ensure_ascii=ascii)
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    texts = read_texts(data, (("data",),))
    assert orjson.loads(texts["data",]) == orjson.loads(data)["data"]


def test_embedded_texts_survive_encoding() -> None:
    obj = {"metadata": {}, "data": {"b": 1, "a": [2]}}
    stored = orjson.dumps(embed(obj, (("data",),), {("data",): b'{"b": 1,  "a":[2]}'}))
    assert stored == b'{"metadata":{},"data":{"b": 1,  "a":[2]}}'
    assert orjson.dumps(obj) == b'{"metadata":{},"data":{"b":1,"a":[2]}}'


def test_texts_of_other_values_are_not_embedded() -> None:
    obj = {"items": [{"data": 1}, {"data": 2}]}
    places = (("items", "*", "data"),)
    stale, known = {("items", "1", "data"): b" 7"}, {("items", "1", "data"): b"2 "}
    assert orjson.dumps(embed(obj, places, stale, known)) == b'{"items":[{"data":1},{"data":2 }]}'


def test_ways_of_writing() -> None:
    obj = {"data": {"b": 1.0, "a": "x y"}}
    stored = {("data",): b'{"b": 1.0, "a": "x y"}'}
    places = (("data",),)
    assert as_sent(stored)(obj, {}) == stored
    assert written_anew(places)(obj, stored) == {("data",): b'{"a":"x y","b":1.0}'}
    assert compacted(places)(obj, stored) == {("data",): b'{"b":1.0,"a":"x y"}'}
    assert compacted(places)({"data": {"b": "<"}}, stored) == {("data",): b'{"b":"\\u003c"}'}


def test_what_is_left_alone_keeps_its_text() -> None:
    assert as_stored({"data": {"a": 1}}, {("data",): b'{"a": 1}'}) == {("data",): b'{"a": 1}'}


def test_half_a_surrogate_pair_is_not_embedded() -> None:
    texts = {("data",): b'{"a":"\\ud800"}'}
    assert embed({"data": {"a": "\ufffd"}}, (("data",),), texts) == {"data": {"a": "\ufffd"}}
    kept = compacted((("data",),))({"data": {"a": "\ufffd"}}, texts)
    assert kept == {("data",): '{"a":"\ufffd"}'.encode()}
