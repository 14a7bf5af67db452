"""Counters, gauges and histograms that cost a few additions on the way, and their text form for those who scrape.

Names are written exactly as declared, which the usual client library does not do: it ends every counter with
``_total``, and some of the original's have no such ending. A series is resolved once (``labelled``) and kept by
whoever counts, even before there is anything to count. As in the original, an instrument without labels shows 0 from
the start, and series with labels are shown once something was counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Protocol

DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def doubling_buckets(first: float, count: int) -> tuple[float, ...]:
    """Bounds of which each is twice the one before."""
    return tuple(first * 2**step for step in range(count))


class Instrument(Protocol):
    """Something that shows its present state as text."""

    @property
    def name(self) -> str:
        """The name of the family, by which a page is ordered."""
        ...

    def lines(self) -> Iterable[str]:
        """The family's lines; none while it has nothing to show."""
        ...


class Value:
    """One series of a counter or gauge. Add to ``value``, or set it where it is a gauge's."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class _Values:
    kind: ClassVar[str]

    def __init__(self, name: str, words: str, labels: Sequence[str] = ()) -> None:
        self.name, self._words, self._labels = name, words, tuple(labels)
        self._series: dict[tuple[str, ...], Value] = {} if labels else {(): Value()}

    def labelled(self, *values: str) -> Value:
        """The series with these labels, made when first asked for."""
        found = self._series.get(values)
        if found is None:
            _check_labels(self.name, self._labels, values)
            found = self._series[values] = Value()
        return found

    def forget(self) -> None:
        """Drop every series that has labels."""
        if self._labels:
            self._series.clear()

    def lines(self) -> Iterable[str]:
        """The family's lines."""
        shown = sorted((values, series.value) for values, series in self._series.items() if self._is_shown(series))
        if not shown:
            return
        yield from _head(self.name, self._words, self.kind)
        for values, value in shown:
            yield f"{self.name}{_labels(zip(self._labels, values, strict=True))} {_number(value)}"

    def _is_shown(self, series: Value) -> bool:
        return True


class Counter(_Values):
    """Counts up."""

    kind = "counter"

    def _is_shown(self, series: Value) -> bool:
        return bool(series.value) or not self._labels


class Gauge(_Values):
    """Goes up and down."""

    kind = "gauge"


class Observations:
    """One series of a histogram."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """One more."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)


class Histogram:
    """Sorts observations into buckets."""

    def __init__(
        self, name: str, words: str, labels: Sequence[str] = (), buckets: Sequence[float] = DEFAULT_BUCKETS
    ) -> None:
        self.name, self._words, self._labels, self._buckets = name, words, tuple(labels), tuple(buckets)
        self._series: dict[tuple[str, ...], Observations] = {} if labels else {(): Observations(self._buckets)}

    def labelled(self, *values: str) -> Observations:
        """The series with these labels, made when first asked for."""
        found = self._series.get(values)
        if found is None:
            _check_labels(self.name, self._labels, values)
            found = self._series[values] = Observations(self._buckets)
        return found

    def lines(self) -> Iterable[str]:
        """The family's lines."""
        seen = [(values, series) for values, series in self._series.items() if series.count or not self._labels]
        if not seen:
            return
        yield from _head(self.name, self._words, "histogram")
        bounds = (*map(_number, self._buckets), "+Inf")
        for values, series in sorted(seen, key=lambda item: item[0]):
            pairs = tuple(zip(self._labels, values, strict=True))
            reached = 0
            for bound, count in zip(bounds, series.counts, strict=True):
                reached += count
                yield f"{self.name}_bucket{_labels((*pairs, ('le', bound)))} {reached}"
            yield f"{self.name}_sum{_labels(pairs)} {_number(series.total)}"
            yield f"{self.name}_count{_labels(pairs)} {reached}"


def render(instruments: Iterable[Instrument]) -> bytes:
    """The page that a scraper gets, families in the order of their names."""
    ordered = sorted(instruments, key=lambda instrument: instrument.name)
    return "".join(f"{line}\n" for instrument in ordered for line in instrument.lines()).encode()


def _check_labels(name: str, labels: tuple[str, ...], values: tuple[str, ...]) -> None:
    if len(labels) != len(values):
        raise ValueError(f"{name} has {len(labels)} labels, not {len(values)}")


def _head(name: str, words: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {words}", f"# TYPE {name} {kind}"


def _labels(pairs: Iterable[tuple[str, str]]) -> str:
    shown = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
    return f"{{{shown}}}" if shown else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)
