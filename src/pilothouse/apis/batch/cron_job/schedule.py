"""Schedules of cron jobs: five fields, or a name such as ``@daily`` or ``@every 1h``.

    0 9-17/2 * * mon-fri     TZ=Asia/Tokyo 30 4 * * *     @weekly

What cannot be understood is refused in the words of the parser that kube-apiserver uses. A leading time zone is
understood, though cron jobs may no longer use it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from pilothouse.apis.batch.cron_job.time_zones import find_time_zone
from pilothouse.apis.integers import parse_integer
from pilothouse.machinery.times import SECOND, TimeError, parse_duration

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_SPACES: Final = "\t\n\v\f\r \x85\xa0"


class _Bounds(NamedTuple):
    least: int
    most: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Bounds(0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)


class ScheduleError(ValueError):
    """A schedule that cannot be understood."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times that a text stands for: those that all fields allow, or one every so many seconds."""

    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    """0 is Sunday."""
    either_day: bool = False
    """Whether a day is meant that fits the day of the month or the weekday; else it has to fit both."""
    every: int = 0
    zone: str = ""


_FIELD: Final = re.compile(r"[^\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+").findall
"""What stands between Go's blanks, of which Python knows four more."""


def check_schedule(text: str) -> None:
    """Raise ``ScheduleError`` for what is no schedule."""
    parse_schedule(text)


def parse_schedule(text: str) -> Schedule:
    """Read a schedule. Raises ``ScheduleError``."""
    if not text:
        raise ScheduleError("empty spec string")
    zone = ""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, text = _split_zone(text)
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            return Schedule(every=_interval(text), zone=zone)
        text = _DESCRIPTORS[text]
    fields = _FIELD(text)
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = map(_read_field, fields, _FIELDS)
    either_day = not days.is_any and not weekdays.is_any
    return Schedule(
        minutes.values, hours.values, days.values, months.values, weekdays.values, either_day=either_day, zone=zone
    )


class _Field(NamedTuple):
    values: frozenset[int]
    is_any: bool
    """Whether it is a star, which leaves the choice of days to the other field."""


def _read_field(field: str, bounds: _Bounds) -> _Field:
    spans = [(expression, _read_range(expression, bounds)) for expression in field.split(",") if expression]
    is_any = any(text[0] in "*?" and span.step == 1 for text, span in spans)
    return _Field(frozenset(value for _, span in spans for value in span), is_any)


def _split_zone(text: str) -> tuple[str, str]:
    end = text.find(" ")
    if end < 0:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = text[text.index("=") + 1 : end]
    try:
        find_time_zone(zone)
    except ValueError as error:
        raise ScheduleError(f"provided bad location {zone}: {error}") from None
    return zone, text[end:].strip(_SPACES)


def _interval(text: str) -> int:
    """The whole seconds of ``@every 90s``, at least one."""
    if not text.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        return max(1, parse_duration(text[len(_EVERY) :]) // SECOND)
    except TimeError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None


def _read_range(expression: str, bounds: _Bounds) -> range:
    """``*``, ``5``, ``1-5``, each with an optional step after a slash."""
    span, *steps = expression.split("/")
    low, *highs = span.split("-")
    if low in ("*", "?"):
        start, end = bounds.least, bounds.most
    else:
        start = end = _number(low, bounds)
        if highs:
            end = _number(highs[0], bounds) if len(highs) == 1 else _refuse(f"too many hyphens: {expression}")
    step = 1
    if steps:
        step = _positive(steps[0]) if len(steps) == 1 else _refuse(f"too many slashes: {expression}")
        if not highs:
            end = bounds.most
    if start < bounds.least:
        _refuse(f"beginning of range ({start}) below minimum ({bounds.least}): {expression}")
    if end > bounds.most:
        _refuse(f"end of range ({end}) above maximum ({bounds.most}): {expression}")
    if start > end:
        _refuse(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    if step == 0:
        _refuse(f"step of range should be a positive number: {expression}")
    return range(start, end + 1, step)


def _refuse(why: str) -> int:
    raise ScheduleError(why)


def _number(text: str, bounds: _Bounds) -> int:
    name = text.lower()
    return bounds.names.index(name) + bounds.least if name in bounds.names else _positive(text)


def _positive(text: str) -> int:
    try:
        number = parse_integer(text, "Atoi")
    except ValueError as error:
        raise ScheduleError(f"failed to parse int from {text}: {error}") from None
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
