"""Observations in declared and in native buckets."""

from __future__ import annotations

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.observations import (
    MAX_BUCKETS,
    SCHEMA,
    NativeBuckets,
    Observations,
    native_bound,
    spans,
    widened,
)

BOUNDS = (0.0, 0.005, 0.1, 1.0, 60.0)
MEASURED = st.floats(1e-9, 1e12)


def seen(*values: float, bounds: tuple[float, ...] = BOUNDS) -> Observations:
    made = Observations(bounds)
    for value in values:
        made.observe(value)
    return made


@given(st.lists(MEASURED))
def test_declared_buckets_end_with_their_bound(values: list[float]) -> None:
    expected = [0] * (len(BOUNDS) + 1)
    for value in values:
        expected[bisect_left(BOUNDS, value)] += 1
    assert seen(*values).counts == expected
    assert seen(*values).count == len(values)


@given(MEASURED)
def test_a_native_bucket_holds_what_is_above_the_one_before(value: float) -> None:
    schema, zeros, numbers = seen(value).native()
    ((key, number),) = numbers.items()
    assert (schema, zeros, number) == (SCHEMA, 0, 1)
    assert native_bound(key - 1) < value <= native_bound(key)


@pytest.mark.parametrize(("value", "key"), [(1.0, 0), (2.0, 8), (0.5, -8), (1.05, 1), (0.001, -79)])
def test_native_keys(value: float, key: int) -> None:
    assert seen(value).native().numbers == {key: 1}
    assert seen(value, bounds=(value,)).native().numbers == {key: 1}


def test_what_takes_no_time_is_in_the_bucket_about_zero() -> None:
    made = seen(0.0, -1.0)
    made.zeros += 2
    assert made.native() == NativeBuckets(SCHEMA, 4, {})
    assert made.counts[0] == 4
    assert made.count == 4


def test_values_beyond_all_bounds_are_counted_with_their_neighbours() -> None:
    made = seen(1e-30, math.inf, 1e300)
    assert sum(made.native().numbers.values()) == 3
    assert len(made.native().numbers) == 2
    assert made.counts == [0, 1, 0, 0, 0, 2]


def test_many_at_once_joined_and_forgotten() -> None:
    made = seen(0.01)
    made.observe_many(0.01, 4)
    both = Observations.joined([made, seen(2.0, 0.01)])
    assert both.counts == [0, 0, 6, 0, 1, 0]
    assert both.total == pytest.approx(2.06)
    made.forget()
    assert (made.count, made.total, made.native().numbers) == (0, 0.0, {})


def test_too_many_native_buckets_become_wider() -> None:
    wide = widened(NativeBuckets(SCHEMA, 1, dict.fromkeys(range(-100, 100), 1)))
    assert (wide.schema, wide.zeros) == (SCHEMA - 1, 1)
    assert sorted(wide.numbers) == list(range(-50, 51))
    assert wide.numbers[-50] == 1  # of -101 and -100
    assert wide.numbers[0] == wide.numbers[49] == 2
    assert len(widened(NativeBuckets(SCHEMA, 0, dict.fromkeys(range(0, 10_000, 9), 1))).numbers) <= MAX_BUCKETS


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({}, []),
        ({5: 1}, [(5, [1])]),
        ({-3: 1, -2: 4, 0: 2}, [(-3, [1, 4, 0, 2])]),
        ({1: 1, 4: 2}, [(1, [1, 0, 0, 2])]),
        ({1: 1, 5: 2}, [(1, [1]), (3, [2])]),
    ],
)
def test_spans_leave_long_gaps_out(numbers: dict[int, int], expected: list[tuple[int, list[int]]]) -> None:
    assert list(spans(numbers)) == expected
