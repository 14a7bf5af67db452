"""Cells of tables that depend on the present: values of their own, so that an encoder can keep all of a row but them.

    age_of("2024-05-01T12:00:00Z")                   Age, shown as 5m2s
    age_of("2024-05-01T12:00:00Z", "3 (", " ago)")   Age, shown as 3 (5m2s ago)
    Due(…)                                           shown as in 5m2s, and later as 5m2s ago

Anything else that a column gives is shown as it is.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from pilothouse.machinery.times import Instant, human_duration, parse_time


class Age(NamedTuple):
    """How long ago something was, with the words around it."""

    of: Instant
    before: str = ""
    after: str = ""

    def text(self, now: Instant) -> str:
        """What is shown at this time."""
        return f"{self.before}{human_duration(now.since(self.of))}{self.after}"


class Due(NamedTuple):
    """How long it is until something is to happen, or how long ago that was."""

    at: Instant

    def text(self, now: Instant) -> str:
        """What is shown at this time."""
        left = self.at.since(now)
        return f"in {human_duration(left)}" if left > 0 else f"{human_duration(-left)} ago"


def age_of(timestamp: str | None, before: str = "", after: str = "") -> Age | str:
    """How long ago a time was; ``<unknown>`` without one. Raises ``TimeError`` for what is no time."""
    return Age(_remembered_time(timestamp), before, after) if timestamp else f"{before}<unknown>{after}"


def due_at(timestamp: str) -> Due:
    """How long it is until a time."""
    return Due(_remembered_time(timestamp))


@lru_cache(maxsize=4096)
def _remembered_time(text: str) -> Instant:
    """Many objects are made in the same second: tables read each time once."""
    return parse_time(text)
