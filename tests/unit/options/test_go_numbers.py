import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.options.go_numbers import (
    ValueRefused,
    format_duration,
    parse_bool,
    parse_decimal,
    parse_duration,
    parse_float,
    parse_int,
    parse_uint,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0), ("42", 42), ("-7", -7), ("+7", 7), ("0x1F", 31), ("0b101", 5), ("0o17", 15), ("017", 15),
        ("1_000", 1000), ("0_7", 7), ("-0", 0), ("00", 0),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
    ],
)  # fmt: skip
def test_integers_in_every_base(text, number):
    assert parse_int(text) == number


@pytest.mark.parametrize("text", ["", "x", "08", "1__0", "_1", "1_", " 1", "1 ", "1.0", "0x", "٣", "--1"])
def test_integers_refused(text):
    with pytest.raises(ValueRefused, match=r'^strconv\.ParseInt: parsing ".*": invalid syntax$'):
        parse_int(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775809", "9" * 5000])
def test_integers_out_of_range(text):
    with pytest.raises(ValueRefused, match=r"value out of range$"):
        parse_int(text)


def test_int32_has_its_own_range():
    assert parse_int("2147483647", 32) == 2147483647
    with pytest.raises(ValueRefused, match=r"value out of range$"):
        parse_int("2147483648", 32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", 'strconv.ParseUint: parsing "x": invalid syntax'),
        ("-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        ("", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("2147483648", 'strconv.ParseUint: parsing "2147483648": value out of range'),
        ("9" * 5000, f'strconv.ParseUint: parsing "{"9" * 5000}": value out of range'),
    ],
)
def test_unsigned_refused(text, message):
    with pytest.raises(ValueRefused) as refusal:
        parse_uint(text, 31)
    assert str(refusal.value) == message


def test_unsigned_in_any_base():
    assert parse_uint("0x10", 64, any_base=True) == 16
    with pytest.raises(ValueRefused):
        parse_uint("0x10", 64)


def test_decimal_takes_no_other_base():
    assert parse_decimal("-010") == -10
    with pytest.raises(ValueRefused, match=r'strconv\.Atoi: parsing "0x1": invalid syntax'):
        parse_decimal("0x1")


@pytest.mark.parametrize(("text", "number"), [("0.02", 0.02), ("1e-3", 0.001), (".5", 0.5), ("5.", 5.0), ("-1", -1.0)])
def test_floats(text, number):
    assert parse_float(text) == number


@pytest.mark.parametrize(
    ("text", "why"),
    [("x", "invalid syntax"), ("", "invalid syntax"), ("1_0", "invalid syntax"), ("1e999", "value out of range")],
)
def test_floats_refused(text, why):
    with pytest.raises(ValueRefused) as refusal:
        parse_float(text)
    assert str(refusal.value) == f'strconv.ParseFloat: parsing "{text}": {why}'


def test_truth_values():
    assert all(parse_bool(text) for text in ("1", "t", "T", "TRUE", "true", "True"))
    assert not any(parse_bool(text) for text in ("0", "f", "F", "FALSE", "false", "False"))
    for text in ("yes", "on", "", "tRUE"):
        with pytest.raises(ValueRefused, match="invalid syntax"):
            parse_bool(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("5s", 5), ("1m0s", 60), ("1h2m3s", 3723), ("1.5h", 5400), ("100ms", 0.1),
        ("1us", 1e-6), ("1µs", 1e-6), ("-2m", -120), ("+2m", 120), (".5s", 0.5), ("1.s", 1), ("1s1s", 2), ("2ns", 2e-9),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("x", 'time: invalid duration "x"'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5d", 'time: unknown unit "d" in duration "5d"'),
        ("1h 2m", 'time: unknown unit "h " in duration "1h 2m"'),
        ("9223372036855s", 'time: invalid duration "9223372036855s"'),
        ("9" * 3000 + "s", f'time: invalid duration "{"9" * 3000}s"'),
    ],
)
def test_durations_refused(text, message):
    with pytest.raises(ValueRefused) as refusal:
        parse_duration(text)
    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (60, "1m0s"), (3600, "1h0m0s"), (5, "5s"), (0.5, "500ms"), (0.0015, "1.5ms"), (1.5, "1.5s"),
     (-90, "-1m30s"), (0.000002, "2µs"), (3e-9, "3ns")],
)  # fmt: skip
def test_durations_shown(seconds, text):
    assert format_duration(seconds) == text


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_a_shown_duration_reads_back(microseconds):
    seconds = microseconds / 1e6
    assert parse_duration(format_duration(seconds)) == pytest.approx(seconds, abs=1e-9, rel=1e-12)


@given(st.text(max_size=40))
def test_any_text_is_a_value_or_refused(text):
    for parse in (parse_int, parse_float, parse_bool, parse_duration, parse_decimal):
        try:
            parse(text)
        except ValueRefused as refusal:
            assert str(refusal)
