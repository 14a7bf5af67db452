"""Long texts are searched in pieces, and nothing is missed where they meet."""

from __future__ import annotations

import re
from operator import itemgetter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.machinery.piecewise import all_of, in_order, in_order_by, occurs
from pilothouse.machinery.yaml_codec import load

PIECE = 32 * 1024


@given(at=st.integers(PIECE - 30, PIECE + 30), length=st.integers(1, 25), pieces=st.integers(1, 3))
def test_what_stands_where_pieces_meet_is_found(at: int, length: int, pieces: int) -> None:
    data = b"x" * (at + (pieces - 1) * PIECE) + b"7" * length + b"x" * PIECE
    assert occurs(re.compile(rb"[0-9]{19}"), data, 19) == (length >= 19)


@pytest.mark.parametrize("blanks", [0, 1, 4000, 4070, 40_000])
@pytest.mark.parametrize("number", ["1.50", "-2e3", "123456789012345678901"])
def test_numbers_of_long_texts_are_read_as_yaml_has_them(number: str, blanks: int) -> None:
    """They are no JSON numbers like any other, wherever they stand."""
    wanted = load(f'{{"a":{number}}}'.encode())["a"]
    for at in range(PIECE - 40, PIECE + 40, 13):
        text = '{"b":"' + "x" * (at - 12) + '","a":' + " " * blanks + number + "}"
        assert load(text.encode())["a"] == wanted


@given(st.randoms(use_true_random=False), st.integers(0, 3_000), st.integers(1, 5_000))
@settings(max_examples=10, deadline=None)
def test_texts_are_sorted(random: Random, count: int, different: int) -> None:
    texts = [str(random.randrange(different)) for _ in range(count)]
    assert in_order(texts) == sorted(texts)


@pytest.mark.parametrize("at", [0, 999, 1_000, 1_001, 2_499])
def test_one_text_that_fails(at: int) -> None:
    texts = ["x"] * 2_500
    assert all_of(str.isalpha, texts)
    texts[at] = "7"
    assert not all_of(str.isalpha, texts)


@pytest.mark.parametrize("count", [10, 5_000])
def test_items_are_sorted_by_their_texts_and_stay_in_order_where_these_are_equal(count: int) -> None:
    items = [(str(number * 7919 % 997), number) for number in range(count)]
    assert in_order_by(itemgetter(0), items) == sorted(items, key=itemgetter(0))
