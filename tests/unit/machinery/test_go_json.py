"""Errors of JSON in the words of Go's decoder."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.machinery.shares import MOST_IN_ONE_CALL, Shares

from pilothouse.apis import types
from pilothouse.machinery import go_json
from pilothouse.machinery.go_json import (
    MAX_DEPTH,
    BeyondFloats,
    JSONSyntaxError,
    duplicate_fields,
    explain,
    format_number,
    may_repeat_fields,
    mend,
    read_mended,
    with_texts,
    without_long_integers,
    written_number,
)
from pilothouse.machinery.schema.repetition import read_repeating

END = "unexpected end of JSON input"
VALUE = "looking for beginning of value"
KEY = "looking for beginning of object key string"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", END),
        ("  \n", END),
        ("{", END),
        ('{"a"', END),
        ('{"a":', END),
        ("[1,", END),
        ('"abc', END),
        ('"abc\\', END),
        ("-", END),
        ("1.", END),
        ("1e", END),
        ("tru", END),
        ("x", f"invalid character 'x' {VALUE}"),
        ("'", f"invalid character '\\'' {VALUE}"),
        ("[,]", f"invalid character ',' {VALUE}"),
        ("[1,]", f"invalid character ']' {VALUE}"),
        ("{]", f"invalid character ']' {KEY}"),
        ("{1:2}", f"invalid character '1' {KEY}"),
        ('{"a":1,}', f"invalid character '}}' {KEY}"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[01]", "invalid character '1' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('"a\tb"', "invalid character '\\t' in string"),
        ('"\\ud8"', 'invalid escape sequence `\\ud8"` in string'),
        ('["\\ud"\n]', 'invalid escape sequence "\\\\ud\\"\\n]" in string'),
        ('"\\ud8', END),
        ('"\\', END),
        ('"\\é', 'invalid escape sequence "\\\\\\xc3" in string'),
        ('"\\`', 'invalid escape sequence "\\\\`" in string'),
        ('"\\u12é"', "invalid escape sequence `\\u12é` in string"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' in numeric literal"),
        ("1ex", "invalid character 'x' in numeric literal"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("nulL", "invalid character 'L' in literal null (expecting 'l')"),
        ("[" * (MAX_DEPTH + 1), "exceeded max depth"),
    ],
)
def test_messages(text: str, message: str) -> None:
    assert explain(text.encode()) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" + "1, " * 50_000 + "]", f"invalid character ']' {VALUE}"),
        ("[" + '{"a": "b"},' * 20_000 + "x]", f"invalid character 'x' {VALUE}"),
        ("{" + '"a":[1.5e3,true],' * 20_000 + "}", f"invalid character '}}' {KEY}"),
        ('{"a":"' + "x" * 100_000 + '" 1}', "invalid character '1' after object key:value pair"),
        ('[{"a":1,}]', f"invalid character '}}' {KEY}"),
        ('[{"a":1,"b"}, 2]', "invalid character '}' after object key"),
        ('["\\x", 1]', "invalid escape sequence `\\x` in string"),
    ],
)
def test_runs_of_good_values_hide_no_error(text: str, message: str) -> None:
    assert explain(text.encode()) == message


@given(st.text(alphabet='{}[]",:0123456789.eE+-tfn \\ulrasx\n', max_size=40))
def test_agrees_with_a_parser_about_what_is_json(text: str) -> None:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "infinity" in str(error):
            return
        assert explain(text.encode()) != "invalid character in string literal" or "surrogate" in str(error)
    else:
        assert explain(text.encode()) == "invalid character in string literal", "no error is found in what has none"


@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    assert explain(data)


def test_errors_are_value_errors() -> None:
    assert issubclass(JSONSyntaxError, ValueError)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a":1,"b":2}', []),
        ('{"a":1,"a":2}', ["a"]),
        ('{"a":1,"a":2,"a":3}', ["a"]),
        ('{"a":{"b":1,"b":2}}', ["a.b"]),
        ('{"a":[{"b":1},{"b":1,"b":2}]}', ["a[1].b"]),
        ('{"a":1,"b":{"c":1,"c":2},"a":3}', ["b.c", "a"]),
        ('{"a":{"b":1},"a":{"b":2}}', ["a"]),
    ],
)
def test_duplicate_fields(text: str, paths: list[str]) -> None:
    assert duplicate_fields(text.encode()) == paths


@pytest.mark.parametrize("key", [b"a\xff", b"a\\ud800"])
def test_duplicate_fields_that_are_no_text(key: bytes) -> None:
    assert duplicate_fields(b'{"%b":1,"%b":2}' % (key, key)) == ["a\ufffd"]
    labels = b'"metadata":{"labels":{"%b":"x","%b":"\xff"}}' % (key, key)
    read = read_repeating(types.struct("core.v1.ConfigMap"), b"{%b}" % labels)
    assert read == ({"metadata": {"labels": {"a\ufffd": "\ufffd"}}}, ['duplicate field "metadata.labels.a\ufffd"'])


@given(st.recursive(st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)))
def test_what_an_encoder_writes_has_no_duplicates(value: object) -> None:
    assert duplicate_fields(json.dumps(value).encode()) == []


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ('{"a":1,"b":{"c":[{"d":1}]}}', False),
        ('{"a": 1,\n  "b": "x"}', False),
        ('{"a":"\\":\\":"}', False),
        ('{"a":1,"a":2}', True),
        ('{"a" :1,"a":2}', True),
        ('{"a"\n\t:1,"a":2}', True),
        ('{"a":"\\u0022:","b":1}', True),
        ('{"a":"\\u0022:","a":1,"b":1}', True),
    ],
)
def test_suspicion_of_repeated_fields(text: str, may: bool) -> None:
    assert may_repeat_fields(text.encode(), json.loads(text)) is may


@given(
    st.lists(st.tuples(st.sampled_from(["a", 'x"', "b:"]), st.sampled_from([1, '":', "y"])), max_size=4),
    st.sampled_from([":", " :", ": ", "\n:"]),
    st.booleans(),
)
def test_repeated_fields_are_never_overlooked(pairs: list[tuple[str, object]], colon: str, numbered: bool) -> None:
    text = "{" + ",".join(f"{json.dumps(key)}{colon}{json.dumps(item)}" for key, item in pairs) + "}"
    if numbered:
        text = text.replace('\\"', "\\u0022")
    if duplicate_fields(text.encode()):
        assert may_repeat_fields(text.encode(), json.loads(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud800"', "\ufffd"),
        (rb'"\ud800A\udc00"', "\ufffdA\ufffd"),
        (rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud800\uD8aa"', "\\ud800\ufffd"),
        (b'"\xe9\xe2\x82"', "\ufffd" * 3),
    ],
)
def test_mending(text: bytes, value: str) -> None:
    assert orjson.loads(mend(text)) == value


@pytest.mark.parametrize("before", range(13))
@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (b"\xff", "\ufffd"),
        (b"\xc3 ", "\ufffd "),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        (b"\\ud83d\\ude00", "😀"),
        (b"\\ude00", "\ufffd"),
        (b"\\ud83dx", "\ufffdx"),
        (b"\\\\ud83d\\ude00", "\\ud83d\ufffd"),
    ],
)
def test_mending_long_texts(before: int, sent: bytes, meant: str) -> None:
    """Pieces end neither within an escape nor within a pair of them."""
    text = b'["' + b"." * before + sent * 12_000 + b"\xff" + b'"]'
    assert read_mended(text) == ["." * before + meant * 12_000 + "\ufffd"]


@pytest.mark.parametrize("sent", [b"\xff", b"\xed\xa0\x80", b"\xc3\xa9\xff", b"\\ud83d\\ude00", b"\\ude00x"])
def test_no_call_is_given_a_long_text_that_is_to_be_mended(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    shares, text = Shares(), b'{"a":"' + sent * (600_000 // len(sent)) + b'"}'

    def decoder(_: str) -> Callable[[str], Any]:
        return lambda errors: SimpleNamespace(decode=shares.of(codecs.getincrementaldecoder("utf-8")(errors).decode))

    monkeypatch.setattr(go_json, "codecs", SimpleNamespace(getincrementaldecoder=decoder))
    for name in ("_STRAYS", "_ESCAPED", "_WHOLE_ESCAPES"):
        monkeypatch.setattr(go_json, name, shares.of_pattern(getattr(go_json, name)))
    mend(text)
    assert shares.most <= MOST_IN_ONE_CALL
    assert shares.total >= len(text)


def test_what_cannot_be_mended() -> None:
    with pytest.raises(JSONSyntaxError, match="unexpected end of JSON input"):
        mend(b'{"a":')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (2.5, "2.5"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-9.223372036854775808e18, "-9223372036854776000"),
    ],
)
def test_floats_as_go_writes_them(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("data", "value", "text"),
    [
        (b'{"a":1e3,"b":"1000.0"}', 1000.0, "1e3"),
        (b"[1, 1.0]", 1.0, "1.0"),
        (b"[18446744073709551616]", 18446744073709551616.0, "18446744073709551616"),
        (b"[1]", 1.0, None),
        (b"a: 1.0", 1.0, None),
        (b"[" * 100_000, 1.0, None),
    ],
)
def test_numbers_as_they_were_written(data: bytes, value: float, text: str | None) -> None:
    assert written_number(data, value) == text


def test_a_number_that_no_float_can_be_is_told_by_its_text():
    with pytest.raises(BeyondFloats, match="cannot unmarshal number -1e400 into Go value of type float64") as raised:
        read_mended(b'{"a":[1,-1e400,1e999]}')
    assert raised.value.value == {"a": [1, float("-inf"), float("inf")]}


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a":'], ids=["deep", "short"])
def test_what_cannot_be_read_even_mended(text):
    with pytest.raises(JSONSyntaxError):
        read_mended(text)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, 9223372036854776000),
        (-(2**63), -(2**63)),
        (2**64 - 1, 18446744073709552000),
        ({"a": [2**63, "x", True]}, {"a": [9223372036854776000, "x", True]}),
    ],
)
def test_whole_numbers_without_a_schema(given, read):
    assert without_long_integers(given) == read


def test_texts_are_kept_as_they_were_written():
    text = b'{"a":"\\u00e9<","b":[1.0,1e2,null,true,{"c":"x\\/y"}],"d":{}}'
    assert orjson.dumps(with_texts(text)) == text


@pytest.mark.parametrize("text", [b"{", b"\xff", b"[" * 100_000])
def test_texts_of_what_is_no_json(text):
    with pytest.raises((ValueError, RecursionError)):
        with_texts(text)
