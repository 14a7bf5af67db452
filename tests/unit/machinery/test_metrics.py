"""Instruments and their text form."""

from __future__ import annotations

import pytest

from pilothouse.machinery.metrics import MAX_HISTOGRAMS, MAX_SERIES, Counter, Gauge, Histogram, doubling_buckets, render


def test_families_are_ordered_and_named_as_declared() -> None:
    attempts = Counter("tries", "Tries.", ("result",))
    attempts.labelled("success").value += 2
    attempts.labelled("error").value += 1
    level = Gauge("level", "Level.")
    level.labelled().value = 1.5
    assert render([attempts, level]).decode() == (
        "# HELP level Level.\n# TYPE level gauge\nlevel 1.5\n"
        '# HELP tries Tries.\n# TYPE tries counter\ntries{result="error"} 1\ntries{result="success"} 2\n'
    )


def test_series_with_labels_are_shown_once_something_was_counted() -> None:
    counter, histogram = Counter("a", "A.", ("x",)), Histogram("b", "B.", ("x",))
    waiting, observed = counter.labelled("1"), histogram.labelled("1")
    counter.labelled("2")
    assert render([counter, histogram]) == b""
    waiting.value += 1
    observed.observe(0.0)
    assert render([counter]).decode().splitlines()[2:] == ['a{x="1"} 1']
    assert b'b_count{x="1"} 1' in render([histogram])
    assert render([Counter("a_total", "A.")]).endswith(b"\na_total 0\n")


def test_a_histogram_counts_up_to_each_bound() -> None:
    seconds = Histogram("seconds", "Seconds.", ("result",), doubling_buckets(0.5, 2))
    series = seconds.labelled("ok")
    for value in (0.5, 0.6, 4):
        series.observe(value)
    assert series.count == 3
    assert render([seconds]).decode().splitlines()[2:] == [
        'seconds_bucket{result="ok",le="0.5"} 1',
        'seconds_bucket{result="ok",le="1"} 2',
        'seconds_bucket{result="ok",le="+Inf"} 3',
        'seconds_sum{result="ok"} 5.1',
        'seconds_count{result="ok"} 3',
    ]


def test_bounds_are_written_as_go_does() -> None:
    sizes = Histogram(
        "sizes", "Sizes.", buckets=(0.00001, 0.5, 100_000.0, 1e6, 1_050_000.0, 1e9, 67_108_864.0, 31_104_000)
    )
    bounds = [line.split('"')[1] for line in sizes.lines() if "_bucket" in line]
    assert bounds == ["1e-05", "0.5", "100000", "1e+06", "1.05e+06", "1e+09", "6.7108864e+07", "3.1104e+07", "+Inf"]


def test_label_values_are_escaped() -> None:
    counter = Counter("a", "A.", ("x",))
    counter.labelled('"\\\n').value = 1
    assert render([counter]).decode().splitlines()[2] == r'a{x="\"\\\n"} 1'


def test_the_number_of_labels_must_fit() -> None:
    with pytest.raises(ValueError, match="a has 1 labels, not 2"):
        Counter("a", "A.", ("x",)).labelled("1", "2")


def test_series_can_be_forgotten() -> None:
    gauge = Gauge("a", "A.", ("x",))
    gauge.labelled("1").value = 1
    gauge.forget()
    assert render([gauge]) == b""


def test_series_are_bounded_and_the_rest_is_counted_together() -> None:
    counter, histogram = Counter("a", "A.", ("x", "y")), Histogram("b", "B.", ("x",))
    for number in range(3 * MAX_SERIES):
        counter.labelled(str(number), "").value += 1
        histogram.labelled(str(number)).observe(0.0)
    counter.labelled("0", "").value += 1
    page = render([counter]).decode().splitlines()
    assert len(page) == 2 + MAX_SERIES + 1
    assert 'a{x="0",y=""} 2' in page
    assert f'a{{x="other",y="other"}} {2 * MAX_SERIES}' in page
    assert render([histogram]).count(b"b_count") == MAX_HISTOGRAMS + 1


def test_long_labels_are_not_kept() -> None:
    counter = Counter("a", "A.", ("x", "y"))
    for letter in "pq":
        counter.labelled(letter * 400_000, "short").value += 1
    assert render([counter]).decode().splitlines()[2:] == ['a{x="other",y="short"} 2']
