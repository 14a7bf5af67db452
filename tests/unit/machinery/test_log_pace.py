"""How many lines one place gets into the log."""

from __future__ import annotations

import logging

import pytest

from pilothouse.machinery.log_pace import LogPace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def shown(pace: LogPace, count: int, *, name: str = "pilothouse.controllers.jobs", line: int = 1) -> list[str]:
    """What is shown of so many messages."""
    made = (logging.LogRecord(name, logging.WARNING, "jobs.py", line, "job %s", (n,), None) for n in range(count))
    return [record.getMessage() for record in made if pace.filter(record)]


def test_a_flood_is_told_of_and_counted(clock: Clock) -> None:
    pace = LogPace(clock)
    lines = shown(pace, 100_000)
    assert lines[:100] == [f"job {number}" for number in range(100)]
    assert lines[100:] == ["job 100 (more like this are left out)"]
    clock.now = 0.2
    assert shown(pace, 3) == ["job 0 (99899 like this were left out)", "job 1", "job 2 (more like this are left out)"]


def test_places_do_not_hide_one_another(clock: Clock) -> None:
    pace = LogPace(clock)
    shown(pace, 1_000)
    assert shown(pace, 1, line=2) == ["job 0"]


def test_what_users_cannot_cause_is_shown(clock: Clock) -> None:
    assert len(shown(LogPace(clock), 1_000, name="pilothouse.storage.writer")) == 1_000
