import math

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.joined_metrics import join_pages, ways_of_joining
from pilothouse.machinery.metrics import CollectedGauge, Counter, Gauge, Histogram, render


def instruments():
    return (
        Counter("requests_total", "Requests.", ("code",)),
        Gauge("inflight", "Requests now."),
        Gauge("longest_seconds", "The longest.", joined="most"),
        Gauge("reload_timestamp_seconds", "Last reload."),
        Histogram("seconds", "Durations.", ("verb",), (0.1, 1.0)),
        CollectedGauge("started_seconds", "Start.", (), lambda: [((), 5)], joined="least"),
    )


def filled(codes, inflight, longest, reload, seconds):
    requests, now, most, last, durations, _ = made = instruments()
    for code in codes:
        requests.labelled(code).value += 1
    now.labelled().value, most.labelled().value, last.labelled().value = inflight, longest, reload
    for verb, value in seconds:
        durations.labelled(verb).observe(value)
    return made


def test_counters_and_histograms_are_summed_and_gauges_as_declared():
    one = filled(["200", "200", 'a"b'], 3, 0.5, 100, [("GET", 0.05), ("GET", 2)])
    other = filled(["200", "404"], 4, 0.25, 200, [("GET", 0.05), ("LIST", 0.5)])
    both = filled(
        ["200", "200", 'a"b', "200", "404"], 7, 0.5, 200, [("GET", 0.05), ("GET", 2), ("GET", 0.05), ("LIST", 0.5)]
    )
    joined = join_pages([render(one), render(other)], ways_of_joining(one))
    assert sorted(joined.splitlines()) == sorted(render(both).splitlines())


def test_one_page_is_left_as_it_is():
    page = render(filled(["500"], 1, 2, 3, [("PUT", math.pi)]))
    assert join_pages([page], {}) == page


@given(st.lists(st.lists(st.sampled_from(["200", "404", "x y", 'q"\\']), max_size=5), min_size=1, max_size=4))
def test_however_counts_are_divided_the_sum_is_the_same(parts):
    pages = [render([filled(part, 0, 0, 0, [])[0]]) for part in parts]
    together = render([filled([code for part in parts for code in part], 0, 0, 0, [])[0]])
    assert sorted(join_pages(pages, {}).splitlines()) == sorted(together.splitlines())
