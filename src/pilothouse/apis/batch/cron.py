"""Schedules of cron jobs: five fields, or a name such as ``@daily`` or ``@every 1h``.

    0 9-17/2 * * mon-fri     TZ=Asia/Tokyo 30 4 * * *     @weekly

Only whether a schedule can be understood is told here, in the words of the parser that the original uses. A leading
time zone is understood, though cron jobs may no longer use it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.apis.batch.time_zones import find_time_zone
from pilothouse.apis.integers import parse_integer
from pilothouse.machinery.times import TimeError, parse_duration

_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
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


def check_schedule(text: str) -> None:
    """Raise ``ScheduleError`` for what is no schedule."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = _strip_zone(text)
    if text.startswith("@"):
        _check_descriptor(text)
        return
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for expression in field.split(","):
            if expression:
                _check_range(expression, bounds)


def _strip_zone(text: str) -> str:
    end = text.find(" ")
    if end < 0:
        raise ScheduleError("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    zone = text[text.index("=") + 1 : end]
    try:
        find_time_zone(zone)
    except ValueError as error:
        raise ScheduleError(f"provided bad location {zone}: {error}") from None
    return text[end:].strip(_SPACES)


def _check_descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if not text.startswith(_EVERY):
        raise ScheduleError(f"unrecognized descriptor: {text}")
    try:
        parse_duration(text[len(_EVERY) :])
    except TimeError as error:
        raise ScheduleError(f"failed to parse duration {text}: {error}") from None


def _check_range(expression: str, bounds: _Bounds) -> None:
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
