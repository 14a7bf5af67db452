from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery import times
from pilothouse.machinery.times import Instant, TimeError


class FixedClock:
    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def time_ns(self) -> int:
        return self.nanos


def test_now_reads_the_given_clock() -> None:
    clock = FixedClock(1_714_564_800_123_456_789)
    assert times.now(clock) == "2024-05-01T12:00:00Z"
    assert times.now_micro(clock) == "2024-05-01T12:00:00.123456Z"
    assert times.now_instant(clock) == Instant(1_714_564_800, 123_456_789)
    assert times.now() > "2024"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00Z"),
        ("2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z"),
        ("2024-01-01T00:30:00.999999999+01:00", "2023-12-31T23:30:00Z"),
        ("2024-05-01T12:00:00,5Z", "2024-05-01T12:00:00Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2024-12-31T23:59:59-24:60", "2025-01-02T00:59:59Z"),
        ("2024-05-01T3:04:05Z", "2024-05-01T03:04:05Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
        ("9999-12-31T23:59:59-01:00", "10000-01-01T00:59:59Z"),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T01:00:00+01:00", None),
        ("0001-01-01T00:00:00.5Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_canonical_times(text: str, expected: str | None) -> None:
    assert times.canonicalize_time(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-05-01T12:00:00.123456Z", "2024-05-01T12:00:00.123456Z"),
        ("2024-05-01T12:00:00,123456+02:00", "2024-05-01T10:00:00.123456Z"),
        ("2024-05-31T12:00:00.000001Z", "2024-05-31T12:00:00.000001Z"),
        ("0001-01-01T00:00:00.000000Z", None),
    ],
)
def test_canonical_micro_times(text: str, expected: str | None) -> None:
    assert times.canonicalize_micro_time(text) == expected


AS = ' as "2006-01-02T15:04:05Z07:00": cannot parse '


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("yesterday", AS + '"yesterday" as "2006"'),
        ("", AS + '"" as "2006"'),
        ("20x4-05-01T12:00:00Z", AS + '"20x4-05-01T12:00:00Z" as "2006"'),
        ("2024/05/01", AS + '"/05/01" as "-"'),
        ("2024-5-01T12:00:00Z", AS + '"5-01T12:00:00Z" as "01"'),
        ("2024-05-01", AS + '"" as "T"'),
        ("2024-05-01 12:00:00Z", AS + '" 12:00:00Z" as "T"'),
        ("2024-05-01t12:00:00z", AS + '"t12:00:00z" as "T"'),
        ("2024-05-01T12:00Z", AS + '"Z" as ":"'),
        ("2024-05-01T12:00:00", AS + '"" as "Z07:00"'),
        ("2024-05-01T12:00:00+0200", AS + '"+0200" as "Z07:00"'),
        ("2024-05-01T12:00:00.Z", AS + '".Z" as "Z07:00"'),
        ("2024-05-01T12:00:00*02:00", AS + '"*02:00" as "Z07:00"'),
        ("2024-13-01T12:00:00Z", ": month out of range"),
        ("2024-00-01T12:00:00Z", ": month out of range"),
        ("2024-02-30T12:00:00Z", ": day out of range"),
        ("2023-02-29T12:00:00Z", ": day out of range"),
        ("2024-05-00T12:00:00Z", ": day out of range"),
        ("2024-05-01T24:00:00Z", ": hour out of range"),
        ("2024-05-01T12:60:00Z", ": minute out of range"),
        ("2024-05-01T12:00:60Z", ": second out of range"),
        ("2024-05-01T12:00:00+25:00", ": time zone offset hour out of range"),
        ("2024-05-01T12:00:00+02:61", ": time zone offset minute out of range"),
        ("2024-05-01T12:00:00Zulu", ': extra text: "ulu"'),
    ],
)
def test_time_errors(text: str, rest: str) -> None:
    with pytest.raises(TimeError) as caught:
        times.canonicalize_time(text)
    assert str(caught.value) == f'parsing time "{text}"{rest}'


def test_time_errors_quote_bytes() -> None:
    with pytest.raises(TimeError) as caught:
        times.parse_time('é"\n\\')
    quoted = r'"\xc3\xa9\"\x0a\\"'
    assert str(caught.value) == f"parsing time {quoted}{AS}{quoted} as " + '"2006"'


MICRO = ' as "2006-01-02T15:04:05.000000Z07:00": cannot parse '


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("2024-05-01T12:00:00Z", MICRO + '"Z" as ".000000"'),
        ("2024-05-01T12:00:00.123Z", MICRO + '".123Z" as ".000000"'),
        ("2024-05-01T12:00:00.123456789Z", MICRO + '"789Z" as "Z07:00"'),
        ("2024-05-01T12:00:00.12x456Z", MICRO + '".12x456Z" as ".000000"'),
        ("2024-05-01T12:00:00.-12345Z", ": fractional second out of range"),
    ],
)
def test_micro_time_errors(text: str, rest: str) -> None:
    with pytest.raises(TimeError) as caught:
        times.canonicalize_micro_time(text)
    assert str(caught.value) == f'parsing time "{text}"{rest}'


@given(st.datetimes(timezones=st.timezones().map(lambda _: datetime.UTC)))
def test_instants_agree_with_datetime(moment: datetime.datetime) -> None:
    text = moment.strftime("%Y").zfill(4) + moment.strftime("-%m-%dT%H:%M:%S.%fZ")
    instant = times.parse_time(text)
    assert instant.seconds == (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)) // datetime.timedelta(
        seconds=1
    )
    assert times.format_micro_time(instant) == text
    assert times.parse_micro_time(text) == instant


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_says_why(text: str) -> None:
    with pytest.raises(TimeError, match=r"^parsing time "):
        times.canonicalize_time("x" + text)


H, M, S = times.HOUR, times.MINUTE, times.SECOND


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5 * S),
        ("1h15m30.918s", H + 15 * M + 30_918_000_000),
        ("-5.s", -5 * S),
        (".5s", S // 2),
        ("+1m", M),
        ("14us", 14_000),
        ("15µs", 15_000),
        ("0.3333333333333333333h", 1_200_000_000_000),
        ("9223372036854775.807us", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.9223372036854775807999999s", 922_337_203),
        ("1h1h", 2 * H),
    ],
)
def test_parse_duration(text: str, nanos: int) -> None:
    assert times.parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("3", 'time: missing unit in duration "3"'),
        ("1h2", 'time: missing unit in duration "1h2"'),
        ("1.2.3s", 'time: missing unit in duration "1.2.3s"'),
        ("3d", 'time: unknown unit "d" in duration "3d"'),
        ("1s ", 'time: unknown unit "s " in duration "1s "'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9223372036854775809ns", 'time: invalid duration "9223372036854775809ns"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
        ("1" * 5000 + "s", f'time: invalid duration "{"1" * 5000}s"'),
    ],
)
def test_duration_errors(text: str, message: str) -> None:
    with pytest.raises(TimeError) as caught:
        times.parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300_000_000, "3.3s"),
        (4 * M + 5 * S, "4m5s"),
        (4 * M + 5_001_000_000, "4m5.001s"),
        (5 * H + 6 * M + 7_001_000_000, "5h6m7.001s"),
        (H, "1h0m0s"),
        (-M, "-1m0s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_format_duration(nanos: int, text: str) -> None:
    assert times.format_duration(nanos) == text


@given(st.integers(-(2**53), 2**53))
def test_durations_round_trip(nanos: int) -> None:
    assert abs(times.parse_duration(times.format_duration(nanos)) - nanos) <= 1


MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1.999999999, "0s"),
        (0, "0s"),
        (0.999, "0s"),
        (70, "70s"),
        (119.999, "119s"),
        (120, "2m"),
        (190, "3m10s"),
        (599.999, "9m59s"),
        (601, "10m"),
        (3 * HOUR - 0.001, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + MINUTE, "3h1m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (2 * DAY - 0.001, "47h"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY - 0.001, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (730 * DAY - 0.001, "729d"),
        (730 * DAY + 23 * HOUR, "2y"),
        (731 * DAY, "2y1d"),
        (8 * 365 * DAY - 0.001, "7y364d"),
        (8 * 365 * DAY + 364 * DAY, "8y"),
    ],
)
def test_human_duration(seconds: float, text: str) -> None:
    assert times.human_duration(seconds) == text
