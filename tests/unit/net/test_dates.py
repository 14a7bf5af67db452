"""Dates of HTTP are those of the standard library."""

from __future__ import annotations

from email.utils import formatdate

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.dates import http_date


def test_the_example_of_the_standard() -> None:
    assert http_date(784111777) == b"Sun, 06 Nov 1994 08:49:37 GMT"


@given(st.integers(0, 253_402_300_799))
def test_any_date(seconds: int) -> None:
    assert http_date(seconds + 0.5) == formatdate(seconds, usegmt=True).encode()
