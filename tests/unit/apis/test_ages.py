"""Cells that depend on the present say so, and what they show at any time."""

from __future__ import annotations

import pytest

from pilothouse.apis.ages import Age, Due, age_of, due_at
from pilothouse.machinery.times import Instant, TimeError, parse_time

NOON = parse_time("2024-05-01T12:00:00Z")


def test_ages_have_words_around_them() -> None:
    age = age_of("2024-05-01T11:54:58Z", "3 (", " ago)")
    assert age == Age(Instant(NOON.seconds - 302), "3 (", " ago)")
    assert isinstance(age, Age) and age.text(NOON) == "3 (5m2s ago)"


@pytest.mark.parametrize("timestamp", [None, ""])
def test_without_a_time_the_age_is_unknown(timestamp: str | None) -> None:
    assert age_of(timestamp) == "<unknown>"
    assert age_of(timestamp, "in ", "!") == "in <unknown>!"


@pytest.mark.parametrize(("later", "text"), [(-120, "in 2m"), (-1, "in 1s"), (0, "0s ago"), (90, "90s ago")])
def test_what_is_due(later: int, text: str) -> None:
    assert due_at("2024-05-01T12:00:00Z") == Due(NOON)
    assert Due(NOON).text(Instant(NOON.seconds + later)) == text


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(TimeError):
        age_of("yesterday")
