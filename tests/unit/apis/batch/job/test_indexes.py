from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis.batch.job.indexes import IndexesError, count_indexes, find_overlap


@pytest.mark.parametrize(("text", "count"), [("", 0), ("0", 1), ("1,3-5,9", 5), ("0-9", 10)])
def test_counting(text: str, count: int) -> None:
    assert count_indexes(text, 10) == count


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("10", 'too large index: "10"'),
        ("1-10", 'too large index: "10"'),
        ("a", 'cannot convert string to integer for index: "a"'),
        ("1,", 'cannot convert string to integer for index: ""'),
        ("3-3", "non-increasing order, previous: 3, current: 3"),
        ("1-3,3", "non-increasing order, previous: 3, current: 3"),
        (
            "1-2-3",
            'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated '
            "by '-'",
        ),
    ],
)
def test_what_is_no_set_of_indexes(text: str, why: str) -> None:
    with pytest.raises(IndexesError) as refused:
        count_indexes(text, 10)
    assert str(refused.value) == why


@pytest.mark.parametrize(
    ("completed", "failed", "shared"),
    [("0-3", "4,6", None), ("0-3", "3", 3), ("1,5-7", "2-4,6", 6), ("x,5", "5", 5), ("", "1", None)],
)
def test_overlaps(completed: str, failed: str, shared: int | None) -> None:
    assert find_overlap(completed, failed, 10) == shared


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_an_overlap_is_the_least_common_index(left: set[int], right: set[int]) -> None:
    texts = [",".join(map(str, sorted(indexes))) for indexes in (left, right)]
    assert count_indexes(texts[0], 61) == len(left)
    assert find_overlap(texts[0], texts[1], 61) == min(left & right, default=None)
