"""The division of seats, by the properties that define it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.flowcontrol.allocation import Claim, divide

CLAIMS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.floats(0, 90)).map(
        lambda numbers: Claim(max(numbers[2], numbers[0]), numbers[0], numbers[0] + numbers[1])
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=120)
@given(CLAIMS, st.floats(0, 1))
def test_every_seat_is_given_once_and_bounds_and_proportions_hold(claims: list[Claim], part: float) -> None:
    low, high = sum(claim.lower for claim in claims), sum(claim.upper for claim in claims)
    seats = round(low + (high - low) * part)
    divided = divide(seats, claims)
    assert divided is not None
    shares, proportion = divided
    assert sum(shares) == pytest.approx(seats, abs=1e-4)
    for claim, share in zip(claims, shares, strict=True):
        wanted = proportion * max(claim.target, 0.001)
        assert claim.lower - 1e-9 <= share <= claim.upper + 1e-9
        if share > wanted + 1e-6:
            assert share == claim.lower
        if share < wanted - 1e-6:
            assert share == claim.upper


def test_what_cannot_be_divided() -> None:
    assert divide(1, [Claim(2, 2, 3)]) is None
    assert divide(9, [Claim(2, 2, 3)]) is None


def test_in_proportion_to_what_is_wanted() -> None:
    assert divide(30, [Claim(10, 0, 100), Claim(20, 0, 100)]) == ([10.0, 20.0], 1.0)
    assert divide(30, [Claim(10, 0, 5), Claim(20, 0, 100)]) == ([5.0, 25.0], 1.25)
