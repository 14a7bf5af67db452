"""When schedules are due."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from pilothouse.apis.batch.cron_job.schedule import parse_schedule
from pilothouse.controllers.cron_jobs.missed import InvalidSchedule, missed_times, seconds_to_next
from pilothouse.controllers.cron_jobs.times import next_time
from pilothouse.machinery.times import Instant, parse_time


def seconds(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        ("* * * * *", "2026-07-09T14:45:00", "2026-07-09T14:46:00"),
        ("* * * * *", "2026-07-09T14:59:59", "2026-07-09T15:00:00"),
        ("0/15 * * * *", "2026-07-09T14:45:00", "2026-07-09T15:00:00"),
        ("20-35/15 * * * *", "2026-07-09T14:45:00", "2026-07-09T15:20:00"),
        ("*/15 8-9 * * *", "2026-07-09T23:46:00", "2026-07-10T08:00:00"),
        ("0 0 1 * *", "2026-12-31T23:59:00", "2027-01-01T00:00:00"),
        ("0 0 29 feb *", "2026-03-01T00:00:00", "2028-02-29T00:00:00"),
        ("0 0 1 * mon", "2026-07-01T00:00:00", "2026-07-06T00:00:00"),
        ("0 0 */2 * mon", "2026-07-01T00:00:00", "2026-07-03T00:00:00"),
        ("0 0 1,15 * ?", "2026-07-02T00:00:00", "2026-07-15T00:00:00"),
        ("@hourly", "2026-07-09T14:45:00", "2026-07-09T15:00:00"),
        ("@daily", "2026-07-09T14:45:00", "2026-07-10T00:00:00"),
        ("@weekly", "2026-07-09T14:45:00", "2026-07-12T00:00:00"),
        ("@monthly", "2026-07-09T14:45:00", "2026-08-01T00:00:00"),
        ("@yearly", "2026-07-09T14:45:00", "2027-01-01T00:00:00"),
        ("@every 90s", "2026-07-09T14:45:00", "2026-07-09T14:46:30"),
        ("@every 1h30m", "2026-07-09T14:45:10", "2026-07-09T16:15:10"),
    ],
)
def test_next(schedule: str, after: str, due: str) -> None:
    assert next_time(parse_schedule(schedule), seconds(after)) == seconds(due)


def test_step_days_and_weekdays_are_alternatives_only_without_a_star() -> None:
    # */2 is no star any more: either the odd day or the Monday.
    schedule = parse_schedule("0 0 */2 * mon")
    assert schedule.either_day
    assert not parse_schedule("0 0 * * mon").either_day


@pytest.mark.parametrize("schedule", ["59 23 31 2 *", "0 0 30 feb *", ", * * * *"])
def test_never(schedule: str) -> None:
    assert next_time(parse_schedule(schedule), seconds("2026-07-09T14:45:00")) is None


def test_time_zone() -> None:
    schedule = parse_schedule("TZ=Asia/Tokyo 30 4 * * *")
    assert next_time(schedule, seconds("2026-07-09T00:00:00")) == seconds("2026-07-09T19:30:00")


def test_a_time_that_is_skipped_in_spring_does_not_come() -> None:
    schedule = parse_schedule("TZ=America/New_York 30 2 * * *")
    after = seconds("2026-03-08T00:00:00", "America/New_York")
    assert next_time(schedule, after) == seconds("2026-03-09T02:30:00", "America/New_York")


def test_a_time_that_comes_twice_in_autumn_is_due_twice() -> None:
    schedule = parse_schedule("TZ=America/New_York 30 1 * * *")
    first = next_time(schedule, seconds("2026-11-01T00:00:00", "America/New_York"))
    assert first is not None and next_time(schedule, first) == first + 3600


def cron_job(created: str, last: str = "", deadline: int | None = None) -> dict[str, Any]:
    status = {"lastScheduleTime": last} if last else {}
    return {
        "metadata": {"creationTimestamp": created},
        "spec": {"startingDeadlineSeconds": deadline},
        "status": status,
    }


@pytest.mark.parametrize(
    ("schedule", "last", "deadline", "now", "latest", "too_many"),
    [
        ("0 * * * *", "", None, "2026-07-09T10:30:00Z", "", False),
        ("0 * * * *", "", None, "2026-07-09T11:00:00Z", "2026-07-09T11:00:00Z", False),
        ("0 * * * *", "2026-07-09T11:00:00Z", None, "2026-07-09T11:30:00Z", "", False),
        ("0 * * * *", "2026-07-09T11:00:00Z", None, "2026-07-09T15:30:00Z", "2026-07-09T15:00:00Z", False),
        ("* * * * *", "", None, "2026-07-09T13:00:00Z", "2026-07-09T13:00:00Z", True),
        ("* * * * *", "", 120, "2026-07-09T13:00:00Z", "2026-07-09T13:00:00Z", False),
        ("30 6-16/4 * * 1-5", "2026-07-03T14:30:00Z", None, "2026-07-06T07:00:00Z", "2026-07-06T06:30:00Z", False),
        ("@every 1h", "", None, "2026-07-09T14:20:00Z", "2026-07-09T14:05:00Z", False),
    ],
)
def test_missed(schedule: str, last: str, deadline: int | None, now: str, latest: str, too_many: bool) -> None:
    made = cron_job("2026-07-09T10:05:00Z", last, deadline)
    missed = missed_times(made, parse_schedule(schedule), parse_time(now), within_deadline=True)
    assert missed.latest == (parse_time(latest).seconds if latest else None)
    assert missed.too_many is too_many


def test_a_schedule_that_never_comes() -> None:
    with pytest.raises(InvalidSchedule):
        now = parse_time("2026-07-09T11:00:00Z")
        missed_times(cron_job("2026-07-09T10:00:00Z"), parse_schedule("0 0 31 2 *"), now, within_deadline=True)


def test_the_next_look() -> None:
    made, schedule = cron_job("2026-07-09T10:05:00Z"), parse_schedule("0 * * * *")
    now = parse_time("2026-07-09T10:59:00Z")
    assert seconds_to_next(made, schedule, now) == pytest.approx(60.1)
    assert seconds_to_next(made, schedule, Instant(now.seconds + 90)) == pytest.approx(3600 - 30 + 0.1)
