from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.yaml_codec import YamlError, dump, load, load_reporting, writing
from pilothouse.machinery.yaml_codec.reading import _read_json, _read_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("---\n...\n", None),
        ("~", None),
        ("a: yes\nb: Off\nc: n\nd: TRUE\ne: yEs", {"a": True, "b": False, "c": False, "d": True, "e": "yEs"}),
        ("n: 1\nyes: 2\non: 3", {"false": 1, "true": 3}),
        ("1: a\n1.5: b\n0x10: c\n1e3: d\n.inf: e", {"1": "a", "1.5": "b", "16": "c", "1000": "d", ".inf": "e"}),
        ("1000000.0: a", {"1e+06": "a"}),
        ("0.1: a", {"0.1": "a"}),
        ("[0, -1, +5, 017, 0o17, 0x1F, 0b101, 1_000, -0x10]", [0, -1, 5, 15, 15, 31, 5, 1000, -16]),
        ("[08, 1., .5, -.5, 1e3, 1.5e3, 1E-2, '1', \"2\"]", [8, 1, 0.5, -0.5, 1000, 1500, 0.01, "1", "2"]),
        ("[18446744073709551615, -9223372036854775808]", [18446744073709551615, -9223372036854775808]),
        ("[1:30, 1e999, 0x, -, +, ., 1_a, 0b2, 1.2.3]", ["1:30", "1e999", "0x", "-", "+", ".", "1_a", "0b2", "1.2.3"]),
        ("[2024-01-01, 2024-01-01T00:00:00Z, 2001-12-14 21:59:43]",
         ["2024-01-01", "2024-01-01T00:00:00Z", "2001-12-14 21:59:43"]),
        ("[!!str 5, !!int '5', !!float 5, !!binary aGk=, !foo 7, !!timestamp 2024-01-01, !!null '']",
         ["5", 5, 5, "hi", "7", "2024-01-01", None]),
        ("a: <<\nb: ['<<']", {"a": "<<", "b": ["<<"]}),
        ("base: &b {x: 1, z: 2}\nc:\n  <<: *b\n  z: 3", {"base": {"x": 1, "z": 2}, "c": {"x": 1, "z": 3}}),
        ("c:\n  z: 3\n  <<: {z: 4}", {"c": {"z": 4}}),
        ("a: &a {x: 1}\nb: &b {x: 2, z: 3}\nc: {<<: [*a, *b]}", {"a": {"x": 1}, "b": {"x": 2, "z": 3},
         "c": {"x": 1, "z": 3}}),
        ("a: &s text\nb: *s\n*s : k", {"a": "text", "b": "text", "text": "k"}),
        ("a: 1\na: 2", {"a": 2}),
        ("a: 1\n---\nb: [broken", {"a": 1}),
        ("text: |\n  one\n  two\nfold: >-\n  one\n  two", {"text": "one\ntwo\n", "fold": "one two"}),
        ('{"a": {"b": [1, null, "\\u00e9"]}}', {"a": {"b": [1, None, "é"]}}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)  # fmt: skip
def test_load(text: str, value: Any) -> None:
    assert load(text.encode()) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [b\n", "yaml: line 1: did not find expected ',' or ']'"),
        ("a:\n\tb: c\n", "yaml: line 2: found character that cannot start any token"),
        ("@a", "yaml: found character that cannot start any token"),
        ("apiVersion: v1\n kind: ConfigMap\n", "yaml: line 2: mapping values are not allowed in this context"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("- a\nb", "yaml: line 3: could not find expected ':'"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("a: !!int x", "yaml: cannot decode !!str `x` as a !!int"),
        ("a: !!bool 1", "yaml: cannot decode !!int `1` as a !!bool"),
        ("a: !!binary '%'", "yaml: !!binary value contains invalid base64 data"),
        ("a: {<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("? [a, 1]\n: b", 'yaml: invalid map key: []interface {}{"a", 1}'),
        ("? {a: 1}\n: b", 'yaml: invalid map key: map[interface {}]interface {}{"a":1}'),
        ("~: b", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "b"'),
        ("~: 9223372036854775808", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 0x8000000000000000"),
        ("a: -.inf", "json: unsupported value: -Inf"),
        ("[.nan]", "json: unsupported value: NaN"),
        ("a:\n x: " + "[" * 10_001, "yaml: line 2: exceeded max depth of 10000"),
        ("[" * 10_001, "yaml: exceeded max depth of 10000"),
        ("- " * 10_001 + "a", "yaml: exceeded max depth of 10000"),
        ("%YAML 1.2\n---\na: b", "yaml: found incompatible YAML document"),
        ("# x\n\n%YAML 1.2\n---\na: b", "yaml: line 2: found incompatible YAML document"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        load(text.encode())
    assert str(caught.value) == message


def test_invalid_utf8() -> None:
    with pytest.raises(YamlError, match=r"^yaml: invalid leading UTF-8 octet$"):
        load(b"a: \xff")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: .nan\na: 1", {"a": 1}),
        ("a: {~: 1}\na: b", {"a": "b"}),
        ("a: [.inf]\na: []\n", {"a": []}),
        ("x: {a: {b: -.inf}, a: 1}", {"x": {"a": 1}}),
    ],
)
def test_what_is_overwritten_may_be_wrong(text: str, value: Any) -> None:
    assert load(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    ["a: .nan\nb: 1\nb: 2", "a: 1\na: .nan", "a: {b: 1}\na: {b: .nan}", "a: " + "[.nan," * 200 + "]" * 200 + "\na: 1"],
)
def test_what_is_not_overwritten_is_told(text: str) -> None:
    with pytest.raises(YamlError, match="unsupported value: NaN"):
        load(text.encode())


def test_repeated_keys() -> None:
    text = b"data:\n  k: 1\n  k: 2\nx: {1: a,\n 1: b, '1': c}\n"
    message = 'yaml: unmarshal errors:\n  line 3: key "k" already set in map\n  line 5: key 1 already set in map'
    assert load_reporting(text) == ({"data": {"k": 2}, "x": {"1": "c"}}, message)
    with pytest.raises(YamlError) as caught:
        load(text, strict=True)
    assert str(caught.value) == message
    assert load(b"a: 1\nb: {a: 1}", strict=True) == {"a": 1, "b": {"a": 1}}


def test_deep_documents_are_read() -> None:
    value = load(b"[" * 9_999 + b"]" * 9_999)
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 9_998


def test_excessive_aliasing_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(YamlError, match=r"^yaml: document contains excessive aliasing$"):
        load("\n".join(lines).encode())


def test_aliases_are_independent_copies() -> None:
    value = load(b"a: &a {x: [1]}\nb: *a")
    value["b"]["x"].append(2)
    assert value["a"] == {"x": [1]}


def test_importing_the_codec_does_not_import_yaml() -> None:
    code = "import sys; import pilothouse.machinery.yaml_codec; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1, {"c": "d", "a": []}], "a": {}}, "a: {}\nb:\n- 1\n- a: []\n  c: d\n"),
        ([["x", "y"], []], "- - x\n  - \"y\"\n- []\n"),
        ("plain", "plain\n"),
        (None, "null\n"),
        ({"a": True, "b": None, "c": 1.5, "d": 1e6, "e": 1234567.5, "f": 1e21, "g": 0.00001},
         "a: true\nb: null\nc: 1.5\nd: 1000000\ne: 1.2345675e+06\nf: 1e+21\ng: 1e-05\n"),
        ({"a": "", "b": "true", "c": "1", "d": "1.0", "e": "null", "f": "~", "g": "n", "h": "1:30", "i": "0x1F"},
         'a: ""\nb: "true"\nc: "1"\nd: "1.0"\ne: "null"\nf: "~"\ng: "n"\nh: "1:30"\ni: "0x1F"\n'),
        ({"a": "2024-05-01T12:00:00Z", "b": "2024-05-01", "c": "2024-13-01", "d": "10.0.0.1", "e": "100m", "f": "0800"},
         'a: "2024-05-01T12:00:00Z"\nb: "2024-05-01"\nc: 2024-13-01\nd: 10.0.0.1\ne: 100m\nf: "0800"\n'),
        ({"a": "a: b", "b": "#c", "c": " x", "d": "- e", "e": "it's", "f": "@g", "g": "*", "h": "a #b", "i": "{x}"},
         "a: 'a: b'\nb: '#c'\nc: ' x'\nd: '- e'\ne: it's\nf: '@g'\ng: '*'\nh: 'a #b'\ni: '{x}'\n"),
        ({"a": "one\ntwo\n", "b": "one\ntwo", "c": "one\n\n", "d": " one\n"},
         "a: |\n  one\n  two\nb: |-\n  one\n  two\nc: |+\n  one\n\nd: |2\n   one\n"),
        ({"a": "x\n\n"}, "a: |+\n  x\n\n"),
        ({"a": "tab\there", "b": "one \ntwo", "c": "é", "d": "é😀"},
         'a: "tab\\there"\nb: "one \\ntwo"\nc: é\nd: "é\\U0001F600"\n'),
        ({"true": 1, "1": 2, "": 3}, '"": 3\n"1": 2\n"true": 1\n'),
        ({"a": "word " * 20 + "end"}, "a:" + " word" * 16 + "\n  word word word word end\n"),
        ({"k" * 129: 1}, "? " + "k" * 129 + "\n: 1\n"),
        ({"a10": 0, "a9": 0, "a-b": 0, "aB": 0, "ab": 0, "a": 0, "a_c": 0, "a09": 0},
         "a: 0\na-b: 0\na_c: 0\na9: 0\na09: 0\na10: 0\naB: 0\nab: 0\n"),
    ],
)  # fmt: skip
def test_dump(value: Any, text: str) -> None:
    assert dump(value) == text
    assert load(text.encode()) == value


UNREADABLE = {*map(chr, range(0x7F, 0x85)), *map(chr, range(0x86, 0xA0)), "\ufffe", "\uffff"}
CHARACTERS = st.characters(codec="utf-8", exclude_characters=UNREADABLE)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1),
                    st.floats(allow_nan=False, allow_infinity=False), st.text(CHARACTERS))  # fmt: skip
KEYS = st.text(CHARACTERS, max_size=20)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(VALUES)
@settings(max_examples=120)
def test_values_round_trip(value: Any) -> None:
    assert load(dump(value).encode()) == value


@given(VALUES)
def test_json_is_yaml(value: Any) -> None:
    text = re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", "?", json.dumps(value, ensure_ascii=False))
    assert load(text.encode()) == json.loads(text)


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%@, \n\t1~<", max_size=40))
@settings(max_examples=120)
def test_any_text_loads_or_says_why(text: str) -> None:
    try:
        load(text.encode())
    except YamlError as error:
        assert str(error)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["<<", "=", "yes", "017", "1:30", "a\"b", "/", "\\", "<&>"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(
    st.dictionaries(st.text(max_size=6) | st.sampled_from(["<<", "n", "1", "~"]), JSON_VALUES, max_size=4),
    st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]),
    st.booleans(),
)
def test_json_reads_as_yaml_does(value: dict[str, Any], separators: tuple[str, str], escaped: bool) -> None:
    text = json.dumps(value, separators=separators, ensure_ascii=escaped).encode()
    quick = _read_json(text)
    if quick is not None:
        assert (quick, "") == _read_yaml(text)


@pytest.mark.parametrize(
    ("text", "quick"),
    [
        ('{"a":"nginx:1.27","b":[1,-2],"c":{"d":null,"e":true}}', True),
        ('{"a":"\\u003c"}\n', True),
        ('{"a":1.5}', False),
        ('{"a":[1,2e3]}', False),
        ('{"a":123456789012345678901}', False),
        ('{"a":1,"a":2}', False),
        ('{"a":\t1}', False),
        ('{"a":\n1}', False),
        ('{"a":"ä"}', False),
        ('{"a":"\\ud83d\\ude00"}', False),
        ("[1]", False),
        ("{a: 1}", False),
        ("", False),
        (json.dumps({"k" * 2000: 1}), False),
    ],
)
def test_which_texts_are_read_as_json(text: str, quick: bool) -> None:
    assert (_read_json(text.encode()) is not None) is quick


@pytest.mark.parametrize("value", ["\x7f", {"\x80": 1}, ["a\x9f"], "\ufffe"])
def test_control_characters_are_not_written(value: Any) -> None:
    with pytest.raises(YamlError, match="yaml: control characters are not allowed"):
        dump(value)


@pytest.mark.parametrize("value", ["\x01", "\x85", "\ufeff", "é\u2028"])
def test_other_odd_characters_are_written(value: str) -> None:
    assert load(dump(value).encode()) == value


@given(st.lists(st.text(st.sampled_from("aZ019.-_/:[{ ~"), max_size=8), unique=True, min_size=2, max_size=12))
def test_plain_keys_have_places_in_their_order(keys: list[str]) -> None:
    """Sorting by places is what makes large maps quick: it must be the order that comparing two by two gives."""
    plain = [key for key in keys if writing._PLAIN_KEY.fullmatch(key)]
    for left in plain:
        for right in plain:
            compared = writing._compare_keys(left, right)
            first, second = writing._place(left), writing._place(right)
            assert (first < second, first > second) == (compared < 0, compared > 0), (left, right)


def test_most_keys_are_plain() -> None:
    plain = ("k12", "app.kubernetes.io/name", "a-1", "tls.crt", "f:k1", "x_10.y", "", "8080")
    assert all(map(writing._PLAIN_KEY.fullmatch, plain))
    circular = ("k1a", "1Mi", "ü", "9" * 19)
    assert not any(map(writing._PLAIN_KEY.fullmatch, circular))
