"""Long texts say the same as when they are read in one call, sound or not."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.machinery.shares import MOST_IN_ONE_CALL, Shares

from pilothouse.machinery import large_json

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=30)
VALUES = st.recursive(SCALARS, lambda item: st.lists(item, max_size=5) | st.dictionaries(st.text(), item, max_size=5))
FILLING = b'"' + b"x" * (large_json.WHOLE // 2) + b'"'


def long_forms(text: bytes) -> list[bytes]:
    """Texts with this one in them that are too long for one call: between others, very often, and deep inside."""
    often = text + b" ,\n" + b",".join([text] * (large_json.WHOLE // (len(text) + 1) + 1))
    return [
        b"[%b,%b,%b]" % (FILLING, text, FILLING),
        b'{"a":%b,"b":%b,"c":%b}' % (FILLING, text, FILLING),
        b" [%b] " % often,
        b"[" * 20 + often + b"]" * 20,
        b'{"k":' * 20 + b"[" + often + b"]" + b"}" * 20,
    ]


def read(parse: Any, text: bytes) -> Any:
    try:
        return orjson.dumps(parse(text))
    except ValueError:
        return None


def tried(work: Any, given: Any) -> Any:
    """What comes of it, or nothing where it is refused."""
    try:
        return work(given)
    except (ValueError, orjson.JSONEncodeError):
        return None


@given(VALUES)
@settings(max_examples=20, deadline=None)
def test_sound_texts(value: Any) -> None:
    for text in long_forms(orjson.dumps(value)):
        assert read(large_json.loads, text) == read(orjson.loads, text) is not None


@given(VALUES, st.integers(0), st.sampled_from([b"", b",", b'"', b"[", b"]", b"{", b"}", b"\\", b" ", b"\xff", b":"]))
@settings(max_examples=40, deadline=None)
def test_damaged_texts(value: Any, place: int, damage: bytes) -> None:
    sound = orjson.dumps(value)
    at = place % len(sound)
    for text in long_forms(sound[:at] + damage + sound[at + 1 :]):
        assert read(large_json.loads, text) == read(orjson.loads, text)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b" " * 200_000 + b"]",
        b"[1" + b" " * 200_000 + b",2]",
        b'{"a"' + b" " * 100_000 + b":" + b" " * 100_000 + b"1}",
        b'{"' + b"k" * 200_000 + b'":1}',
        b'["' + b"\\\\" * 100_000 + b'"]',
        b"[" + b"1" * 200_000 + b"]",
        b"[" + b"[]," * 60_000 + b"[]]",
        b'"' + b"x" * 200_000 + b'"',
        b"[" + b"1," * 100_000 + b"]",
        b"[" + b" " * 200_000 + b",1]",
        b"[1," + b" " * 200_000 + b"]",
        b"{" + b'"a":1,' * 30_000 + b"}",
        b"[" + b"[" * 200 + b"]" * 200 + b"," + b"1," * 100_000 + b"1]",
        b"1 " * 100_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_edges(text: bytes) -> None:
    assert read(large_json.loads, text) == read(orjson.loads, text)


STRING_PIECES = [
    b"x", "é".encode(), "€".encode(), "😀".encode(), b"\\ud83d\\ude00", b"\\u00e9", b"\\\\", b'\\"', b"\\\\ud83d",
    b"\\ud83d", b"\\ude00", b"\\x", b"\\u12", b"\x80", b"\xff", b"\xed\xa0\x80", b"\x01",
]  # fmt: skip


@pytest.mark.parametrize("one", STRING_PIECES, ids=repr)
@pytest.mark.parametrize("before", range(7))
def test_long_strings(one: bytes, before: int) -> None:
    """Wherever a piece ends: within a character, an escape, or a pair of them."""
    string = b'"' + b"." * before + one * (200_000 // len(one)) + b'"'
    for text in (b"[%b]" % string, b'{"a":%b}' % string, b"{%b:1}" % string):
        assert read(large_json.loads, text) == read(orjson.loads, text)
        assert tried(large_json.loads_with, text) == tried(json.loads, text)


@pytest.mark.parametrize("one", ["x", "€", "\ufffd", '"', "\x01"])
@pytest.mark.parametrize("shape", ['{"a":%s}', "[%s,%s]", "{%s:1}"])
def test_no_call_is_given_a_long_string(monkeypatch: pytest.MonkeyPatch, one: str, shape: str) -> None:
    shares, value = Shares(), json.loads(shape.replace("%s", json.dumps(one * 200_000)))
    text = orjson.dumps(value)
    for name in ("_CHARACTERS", "_WHOLE_CHARACTERS"):
        monkeypatch.setattr(large_json, name, shares.of_pattern(getattr(large_json, name)))
    assert large_json._Reader(text, shares.of(orjson.loads)).read() == value
    monkeypatch.setattr(large_json, "orjson", SimpleNamespace(dumps=shares.of(orjson.dumps)))
    assert large_json.dumps(value) == text
    assert shares.most <= MOST_IN_ONE_CALL
    assert shares.total >= 2 * len(one * 200_000)


@pytest.mark.parametrize("one", ["x", "é", "€", "😀", '"', "\\", "\x01", "\ud800"])
def test_long_strings_are_written_as_in_one_call(one: str) -> None:
    text = "." + one * 70_000
    for value in (text, [text], {"a": {text: text}}):
        assert tried(large_json.dumps, value) == tried(orjson.dumps, value)


def test_repeated_keys_keep_their_place() -> None:
    text = b"{" + b",".join(b'"k%d":%d' % (number % 1000, number) for number in range(30_000)) + b"}"
    assert list(large_json.loads(text).items()) == list(orjson.loads(text).items())


class Pairs(list[tuple[str, Any]]):
    """An object's pairs."""


def test_pairs() -> None:
    pairs = b",".join(b'"k%d":{"a":%d,"a":2}' % (number % 10, number) for number in range(10_000))
    text = b'{"long":[' + b"{}," * 40_000 + b"{}]," + pairs + b"}"
    read, whole = large_json.loads_with(text, Pairs), json.loads(text, object_pairs_hook=Pairs)
    assert read == whole
    assert type(read) is type(read[0][1][0]) is Pairs


def test_hooks() -> None:
    text = b"[" + b"1.5," * 50_000 + b"1e400]"
    seen: list[str] = []
    large_json.loads_with(text, parse_float=seen.append)
    assert (len(seen), seen[-1]) == (50_001, "1e400")


def test_too_deep() -> None:
    with pytest.raises(orjson.JSONDecodeError):
        large_json.loads(b"[" * 200_000)
    with pytest.raises(RecursionError):
        large_json.loads_with(b"[" * 200_000 + b"]" * 200_000)


def long_values(value: Any) -> list[Any]:
    many = {f"{number}": value for number in range(500)}
    return [
        value,
        [value] * 500,
        many,
        {"a": {"b": [value, many]}, "c": [[many] * 2, *[[value]] * 300]},
        [[{"a": value}] * 9] * 201,
    ]


@given(VALUES)
@settings(max_examples=20, deadline=None)
def test_long_values_are_written_as_in_one_call(value: Any) -> None:
    for each in long_values(value):
        assert large_json.dumps(each) == orjson.dumps(each)


@pytest.mark.parametrize("depth", [200, 253, 254, 255, 256, 300])
@pytest.mark.parametrize("wide", [False, True])
def test_values_may_be_as_deep_as_in_one_call(depth: int, wide: bool) -> None:
    value: Any = ["x"] * 500 if wide else {}
    for number in range(depth):
        value = {"a": value} if number % 2 else [value]

    def write(dumps: Any) -> bytes | None:
        try:
            return bytes(dumps(value))
        except orjson.JSONEncodeError:
            return None

    assert write(large_json.dumps) == write(orjson.dumps)


def test_what_is_no_json_is_refused() -> None:
    for wrong in ({1: 2}, {"a": {1: 2}}, {"a": object()}, [{"a": "\ud800"}]):
        with pytest.raises(orjson.JSONEncodeError):
            large_json.dumps(wrong)


@pytest.mark.parametrize("aside", [False, True])
async def test_long_values_are_not_written_to_find_that_they_are(aside: bool) -> None:
    def write(value: Any, most: int) -> bytes | None:
        return large_json.dumps_short(value, most)

    long: Any = {"a": {f"k{number}": {} for number in range(100_000)}}
    short: Any = {"a": [1, {"b": "c"}]}
    for value in (long, short):
        whole = orjson.dumps(value)
        for most in (10, len(whole) - 1, len(whole)):
            written = await asyncio.to_thread(write, value, most) if aside else write(value, most)
            assert written == (whole if most == len(whole) else None)
    if aside:
        tracemalloc.start()
        assert await asyncio.to_thread(write, long, 8192) is None
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 256 * 1024
