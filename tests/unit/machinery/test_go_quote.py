"""Text as Go prints it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.go_quote import format_float, quote, show


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("plain text", '"plain text"'),
        ('a"b', '"a\\"b"'),
        ("a\\b", '"a\\\\b"'),
        ("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'),
        ("\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'),
        ("é漢😀", '"é漢😀"'),
        ("\u00a0\u200b\ufeff", '"\\u00a0\\u200b\\ufeff"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_quote(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@given(st.text(alphabet=st.characters(max_codepoint=0x7E, min_codepoint=0x20)))
def test_quote_of_ascii_is_json(text: str) -> None:
    assert json.loads(quote(text)) == text


@given(st.text())
def test_quote_leaves_nothing_unprintable(text: str) -> None:
    assert quote(text).isprintable()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        (5, "5"),
        (2**63 - 1, "9223372036854775807"),
        (2**63, "9.223372036854776e+18"),
        (1.5, "1.5"),
        ("x y", "x y"),
        ([], "[]"),
        ([1, "a", None], "[1 a <nil>]"),
        ({}, "map[]"),
        ({"b": [1], "a": {"c": False}}, "map[a:map[c:false] b:[1]]"),
    ],
)
def test_show(value: Any, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-2.25, "-2.25"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (1e21, "1e+21"),
        (1e100, "1e+100"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-1.5e-7, "-1.5e-07"),
        (3.141592653589793, "3.141592653589793"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_floats(value: float, text: str) -> None:
    assert format_float(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_their_value(value: float) -> None:
    assert float(format_float(value)) == value
