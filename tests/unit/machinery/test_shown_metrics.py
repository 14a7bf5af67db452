"""Families as flags want them shown."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.metric_registry import Registry
from pilothouse.machinery.metrics import CROWDED, CollectedGauge, Counter, Gauge, Histogram, Instrument, render
from pilothouse.machinery.shown_metrics import Deprecated, read_allowed


class Part:
    def __init__(self, *instruments: Instrument) -> None:
        self._instruments = instruments

    def instruments(self) -> Iterable[Instrument]:
        return self._instruments


def page(registry: Registry, *instruments: Instrument) -> str:
    registry.register(Part(*instruments))
    return render(tuple(registry)).decode()


def test_values_that_are_not_allowed_are_one() -> None:
    requests = Counter("requests_total", "[BETA] Requests.", ("code", "verb"))
    for code, verb, number in (("200", "GET", 5), ("500", "GET", 2), ("503", "GET", 1), ('5"3', "PUT", 4)):
        requests.labelled(code, verb).value += number
    before = CROWDED.value
    text = page(Registry(allowed=read_allowed({"requests_total,code": "200,404"})), requests)
    assert 'requests_total{code="200",verb="GET"} 5\n' in text
    assert 'requests_total{code="unexpected",verb="GET"} 3\n' in text
    assert 'requests_total{code="unexpected",verb="PUT"} 4\n' in text
    assert "503" not in text
    assert f"cardinality_enforcement_unexpected_categorizations_total {before + 7:.0f}\n" in text


def test_histograms_and_gauges_of_them() -> None:
    took, newest = (
        Histogram("took", "[ALPHA] x", ("who",), (1, 2)),
        Gauge("newest", "[ALPHA] x", ("who",), joined="most"),
    )
    for who, value in (("a", 0.5), ("b", 1.5), ("c", 3)):
        took.labelled(who).observe(value)
        newest.labelled(who).value = value
    text = page(Registry(allowed=read_allowed({"took,who": "a", "newest,who": ""})), took, newest)
    buckets = [line for line in text.splitlines() if line.startswith('took_bucket{who="unexpected"')]
    assert [line.rpartition(" ")[2] for line in buckets] == ["0", "1", "2"]
    assert 'took_sum{who="unexpected"} 4.5\ntook_count{who="unexpected"} 2\n' in text
    assert 'newest{who="unexpected"} 3\n' in text


def test_what_reads_files_is_still_read() -> None:
    files = CollectedGauge("files", "x", ("kind",), lambda: [(("a",), 1), (("b",), 2)], aside=True)
    assert 'files{kind="unexpected"} 3\n' in page(Registry(allowed=read_allowed({"files,kind": "c"})), files)


def test_deprecated_families_are_hidden() -> None:
    old = Deprecated(Counter("old_total", "[STABLE] Old."), "1.34.0")
    hidden = page(Registry(), old)
    assert "old_total" not in hidden
    assert "\nhidden_metrics_total 1\n" in hidden
    shown = page(Registry(shows_hidden=True), old)
    assert "# HELP old_total [STABLE] (Deprecated since 1.34.0) Old.\n" in shown
    assert "\nhidden_metrics_total 0\n" in shown
    assert "old_total" not in page(Registry(["old_total"], shows_hidden=True), old)
