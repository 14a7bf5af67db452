from __future__ import annotations

import zoneinfo
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apis.batch.cron_job.schedule import ScheduleError, check_schedule
from pilothouse.apis.batch.cron_job.time_zones import find_time_zone, is_well_formed


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "0 9-17/2 1,15 JAN-mar mon,WED",
        "*/15 ? * * 0-6",
        "5/10 * * * *",
        "  1   2\t3 4 5 ",
        "@yearly",
        "@midnight",
        "@every 1h30m",
        "TZ=UTC 0 0 * * *",
        "CRON_TZ=Europe/Berlin @daily",
        ", * * * *",
    ],
)
def test_schedules(schedule: str) -> None:
    check_schedule(schedule)


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ("", "empty spec string"),
        ("x", "expected exactly 5 fields, found 1: [x]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* 5-3 * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("@fortnightly", "unrecognized descriptor: @fortnightly"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_what_is_no_schedule(schedule: str, why: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        check_schedule(schedule)
    assert str(refused.value) == why


@given(st.text(alphabet="0123456789*/-,?@ \tTZ=everyhmon\u00e9", max_size=40))
def test_anything_is_understood_or_refused(text: str) -> None:
    try:
        check_schedule(text)
    except ScheduleError as refused:
        assert str(refused)


def test_blanks_are_those_of_go() -> None:
    check_schedule("*\u2003* * * *")
    with pytest.raises(ScheduleError, match="found 1"):
        check_schedule("\x1d")


def test_time_zones() -> None:
    for name in ("", "UTC", "America/New_York", "Etc/GMT+3"):
        find_time_zone(name)
    for name, why in (("Nowhere", "unknown time zone Nowhere"), ("../etc/passwd", "time: invalid location name")):
        with pytest.raises(ValueError, match=why):
            find_time_zone(name)


def test_what_lies_among_the_time_zones(tmp_path: Path) -> None:
    before = zoneinfo.TZPATH
    (tmp_path / "Region").mkdir()
    (tmp_path / "list.tab").write_text("words")
    zoneinfo.reset_tzpath([str(tmp_path), *before])
    try:
        for name, why in (("Region", "is a directory"), ("list.tab", "malformed time zone information")):
            with pytest.raises(ValueError, match=why):
                find_time_zone(name)
    finally:
        zoneinfo.reset_tzpath(before)


@pytest.mark.parametrize(
    ("name", "fine"),
    [("Asia/Tokyo", True), ("a//b", False), ("-x", False), ("..", False), ("fifteen_letters", False), ("a b", False)],
)
def test_names_of_time_zones(name: str, fine: bool) -> None:
    assert is_well_formed(name) is fine
