"""Query strings as Go reads them."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.endpoints.query import Query, parse, parse_integer, unescape
from pilothouse.machinery.errors import StatusError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("a=1&b=2", {"a": ["1"], "b": ["2"]}),
        ("a=1&a=2", {"a": ["1", "2"]}),
        ("a", {"a": [""]}),
        ("a=", {"a": [""]}),
        ("=x", {"": ["x"]}),
        ("a=b=c", {"a": ["b=c"]}),
        ("&&a=1&", {"a": ["1"]}),
        ("a=1;b=2&c=3", {"c": ["3"]}),
        ("a=%41%20b+c", {"a": ["A b c"]}),
        ("%61=1", {"a": ["1"]}),
        ("a=%4&b=%zz&c=%&d=1", {"d": ["1"]}),
        ("a=%ff", {"a": ["\ufffd"]}),
    ],
)
def test_parsing(text: str, values: dict[str, list[str]]) -> None:
    assert parse(text) == values


@given(st.lists(st.tuples(st.text(), st.text())))
def test_parsing_undoes_encoding(pairs: list[tuple[str, str]]) -> None:
    text = urlencode(pairs)
    assert parse(text) == parse_qs(text, keep_blank_values=True)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    values = parse(text)
    assert all(values.values())


@pytest.mark.parametrize("text", ["%", "%4", "%g1", "a%1"])
def test_broken_escapes(text: str) -> None:
    with pytest.raises(ValueError, match="invalid URL escape"):
        unescape(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", False), ("x", True), ("x=", True), ("x=true", True), ("x=1", True), ("x=perhaps", True),
        ("x=false", False), ("x=FALSE", False), ("x=0", False), ("x=true&x=false", True), ("x=false&x=true", False),
    ],
)  # fmt: skip
def test_booleans(text: str, wanted: bool) -> None:
    assert Query(text).boolean("x") is wanted
    assert Query(text).optional_boolean("x") is (wanted if text else None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("-0", 0), ("+5", 5), ("007", 7), ("-12", -12), ("9223372036854775807", (1 << 63) - 1),
        ("-9223372036854775808", -(1 << 63)), ("0" * 5000 + "7", 7),
    ],
)  # fmt: skip
def test_integers(text: str, number: int) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "invalid syntax"), ("-", "invalid syntax"), ("1.5", "invalid syntax"), ("1_0", "invalid syntax"),
        (" 1", "invalid syntax"), ("٣", "invalid syntax"), ("9223372036854775808", "value out of range"),
        ("-9223372036854775809", "value out of range"), ("9" * 5000, "value out of range"),
    ],
)  # fmt: skip
def test_no_integers(text: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_integer(text)
    assert caught.value.code == 400
    assert caught.value.message == f'strconv.ParseInt: parsing "{text}": {why}'


def test_values() -> None:
    query = Query("a=1&a=2")
    assert (query.first("a"), query.text("a"), query.all("a"), query.integer("a")) == ("1", "1", ["1", "2"], 1)
    assert (query.first("b"), query.text("b"), query.all("b"), query.integer("b")) == (None, "", [], None)


def test_as_many_parameters_as_go_reads() -> None:
    assert len(Query("a=1" + "&a=1" * 9_999).all("a")) == 10_000
    assert Query("a=1" + "&a=1" * 10_000).all("a") == []


@pytest.mark.parametrize("at", [16_382, 16_383, 16_384, 16_385])
def test_a_broken_escape_in_a_long_value(at: int) -> None:
    """Wherever it stands in the pieces that a long value is read in."""
    with pytest.raises(ValueError, match='invalid URL escape "%zz"'):
        unescape("a" * at + "%zz" + "b" * 20_000)
