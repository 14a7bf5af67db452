"""When a schedule is due. Times are seconds since 1970.

A time is due if the clock on the wall of the schedule's time zone shows what the schedule says. So a time that is
skipped in spring does not come at all, and one that comes twice in autumn is due twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from pilothouse.apis.batch.cron_job.schedule import Schedule

_YEARS: Final = 5


def zone_of(name: str) -> tzinfo:
    """A time zone; none at all is UTC, where the controllers live."""
    return UTC if name in ("", "UTC", "Local") else ZoneInfo(name)


def next_time(schedule: Schedule, after: int) -> int | None:
    """The first time after another at which the schedule is due; None if there is none within five years."""
    if schedule.every:
        return after + schedule.every
    zone = zone_of(schedule.zone)
    began = datetime.fromtimestamp(after + 1, zone).date()
    for day in _days(began):
        if _fits(schedule, day):
            for time in _times_on(schedule, day, zone):
                if time > after:
                    return time
    return None


def _days(first: date) -> Iterator[date]:
    day = first
    while day.year <= first.year + _YEARS:
        yield day
        if day == date.max:
            return
        day += timedelta(days=1)


def _fits(schedule: Schedule, day: date) -> bool:
    if day.month not in schedule.months:
        return False
    by_date, by_weekday = day.day in schedule.days, day.isoweekday() % 7 in schedule.weekdays
    return by_date or by_weekday if schedule.either_day else by_date and by_weekday


def _times_on(schedule: Schedule, day: date, zone: tzinfo) -> Iterator[int]:
    """The times of a day, in their order, which is not that of the wall clock when that is put back."""
    hours = {
        int(datetime(day.year, day.month, day.day, hour, tzinfo=zone, fold=fold).timestamp())
        for hour in schedule.hours
        for fold in (0, 1)
    }
    for hour in sorted(hours):
        for minute in sorted(schedule.minutes):
            time = hour + 60 * minute
            shown = datetime.fromtimestamp(time, zone)
            if shown.date() == day and shown.hour in schedule.hours and shown.minute == minute:
                yield time
