"""Which start times of a cron job have passed without a job, and when the next one comes."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.apis.batch.cron_job.schedule import Schedule
from pilothouse.controllers.cron_jobs.times import next_time
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time

_TOO_MANY: Final = 100
_PADDING: Final = 0.1
"""Clocks differ a little; a look that comes early finds nothing to do."""


class InvalidSchedule(ValueError):
    """A schedule that never comes."""


class Missed(NamedTuple):
    """``latest`` is the newest time that is due and unmet, if any; ``number`` about how many there are."""

    since: int
    latest: int | None
    number: int

    @property
    def too_many(self) -> bool:
        """Whether there are so many that somebody should know."""
        return self.number > _TOO_MANY


def missed_times(cron_job: Object, schedule: Schedule, now: Instant, *, within_deadline: bool) -> Missed:
    """What was missed since the last start, or since the cron job was made. Raises ``InvalidSchedule``."""
    last = (cron_job.get("status") or {}).get("lastScheduleTime")
    since = parse_time(last or cron_job["metadata"]["creationTimestamp"]).seconds
    deadline = cron_job["spec"].get("startingDeadlineSeconds")
    if within_deadline and deadline is not None:
        since = max(since, now.seconds - deadline)
    first = next_time(schedule, since)
    second = None if first is None else next_time(schedule, first)
    if first is None or second is None:
        raise InvalidSchedule("time difference between two schedules is less than 1 second")
    if now.seconds < first:
        return Missed(since, None, 0)
    if now.seconds < second:
        return Missed(since, first, 0)
    count = (now.seconds - first) // (second - first) + 1
    # Start one interval early: intervals need not be equal, those of ``30 6-16/4 * * 1-5`` are not.
    latest, time = None, next_time(schedule, first + (count - 2) * (second - first))
    while time is not None and time <= now.seconds:
        latest, time = time, next_time(schedule, time)
    return Missed(since, latest, count)


def seconds_to_next(cron_job: Object, schedule: Schedule, now: Instant) -> float | None:
    """How long until the cron job has to be looked at; None if never."""
    try:
        missed = missed_times(cron_job, schedule, now, within_deadline=False)
    except InvalidSchedule:
        after = now.seconds
    else:
        after = missed.latest or (now.seconds if missed.number else missed.since)
    time = next_time(schedule, after)
    return None if time is None else time + _PADDING - now.seconds - now.nanos / 1e9
