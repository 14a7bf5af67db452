"""Counters, gauges and histograms that cost a few additions on the way, and their text form for those who scrape.

Names are written exactly as declared, which the usual client library does not do: it ends every counter with
``_total``, and some of kube-apiserver's have no such ending. A series is resolved once (``labelled``) and kept by
whoever counts, even before there is anything to count. As in kube-apiserver, an instrument without labels shows 0 from
the start, and series with labels are shown once something was counted.

Whatever labels are asked for, a family has a bounded number of series, each with short labels: those who scrape, and
the memory of the process, do not depend on what clients can think of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Final, Literal, Protocol, runtime_checkable

from pilothouse.machinery.metric_text import bound_text, head, label_text, number_text
from pilothouse.machinery.observations import Observations

Joining = Literal["sum", "most", "least"]
OTHER: Final = "other"
"""Stands for what is not told apart."""
NATIVE: Final = "_native"
ZERO: Final = "zero"
"""In lines of native buckets: the end of the name, and the key of the bucket about zero."""
MAX_SERIES: Final = 5_000
MAX_HISTOGRAMS: Final = 2_000
MAX_LABEL: Final = 256
_LINES_A_PIECE: Final = 500
DEFAULT_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def doubling_buckets(first: float, count: int) -> tuple[float, ...]:
    """Bounds of which each is twice the one before."""
    return tuple(first * 2**step for step in range(count))


class Instrument(Protocol):
    """Something that shows its present state as text."""

    @property
    def stability(self) -> str:
        """What may change about it: as Kubernetes puts it, at the beginning of the help text."""
        ...

    @property
    def name(self) -> str:
        """The name of the family, by which a page is ordered."""
        ...

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines; none while it has nothing to show.

        Of a histogram, those of its native buckets too where they are wanted: ``seconds_native{key="-82"} 5``.
        """
        ...


@runtime_checkable
class Aside(Protocol):
    """An instrument that may have to be asked in a thread, before it shows its state."""

    aside: bool

    def read(self) -> None:
        """Ask now what is to be shown."""
        ...


class Value:
    """One series of a counter or gauge. Add to ``value``, or set it where it is a gauge's."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Described:
    """Has a help text that begins with how stable the family is."""

    _words: str

    @property
    def stability(self) -> str:
        """STABLE, BETA or ALPHA; what says nothing is INTERNAL."""
        mark, _, _ = self._words.partition("]")
        return mark[1:] if mark.startswith("[") else "INTERNAL"


class _Values(Described):
    kind: ClassVar[str]

    def __init__(self, name: str, words: str, labels: Sequence[str] = ()) -> None:
        self.name, self._words, self._labels = name, words, tuple(labels)
        self._series: dict[tuple[str, ...], Value] = {} if labels else {(): Value()}

    def labelled(self, *values: str) -> Value:
        """The series with these labels, made when first asked for."""
        found = self._series.get(values)
        if found is None:
            values = _bounded(self.name, self._labels, values, len(self._series) < MAX_SERIES)
            found = self._series.setdefault(values, Value())
        return found

    def forget(self) -> None:
        """Drop every series that has labels."""
        if self._labels:
            self._series.clear()

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        shown = sorted((values, series.value) for values, series in self._series.items() if self._is_shown(series))
        if not shown:
            return
        yield from head(self.name, self._words, self.kind)
        for values, value in shown:
            yield f"{self.name}{label_text(zip(self._labels, values, strict=True))} {number_text(value)}"

    def _is_shown(self, series: Value) -> bool:
        return True


CROWDED: Final = Value()
"""How often labels were not told apart, in this process."""


class Counter(_Values):
    """Counts up."""

    kind = "counter"

    def reset(self) -> None:
        """Count from nothing again."""
        for series in self._series.values():
            series.value = 0

    def _is_shown(self, series: Value) -> bool:
        return bool(series.value) or not self._labels


class Gauge(_Values):
    """Goes up and down."""

    kind = "gauge"

    def __init__(self, name: str, words: str, labels: Sequence[str] = (), *, joined: Joining | None = None) -> None:
        super().__init__(name, words, labels)
        self.joined: Joining = joined or _joining(name)
        """What several processes of one server show together."""


class CollectedGauge(Described):
    """A gauge whose series are asked for when the page is made: label values and their number."""

    def __init__(
        self,
        name: str,
        words: str,
        labels: Sequence[str],
        collect: Callable[[], Iterable[tuple[tuple[str, ...], float]]],
        kind: str = "gauge",
        *,
        aside: bool = False,
        joined: Joining | None = None,
    ) -> None:
        self.name, self._words, self._labels, self._collect, self._kind = name, words, tuple(labels), collect, kind
        self.joined: Joining = joined or _joining(name)
        """What several processes of one server show together."""
        self.aside = aside
        """Whether asking reads files: ``read`` then does it, in a thread, before the page is made."""
        self._read: list[tuple[tuple[str, ...], float]] = []

    def read(self) -> None:
        """Ask now what ``lines`` is to show."""
        self._read = list(self._collect())

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        shown = sorted(self._read if self.aside else self._collect())
        if not shown:
            return
        yield from head(self.name, self._words, self._kind)
        for values, value in shown:
            yield f"{self.name}{label_text(zip(self._labels, values, strict=True))} {number_text(value)}"


class Refreshed:
    """An instrument that something must be brought up to date for before it is shown."""

    def __init__(self, instrument: Instrument, refresh: Callable[[], object]) -> None:
        self.name, self.stability = instrument.name, instrument.stability
        self.joined: Joining = getattr(instrument, "joined", "sum")
        self._instrument, self._refresh = instrument, refresh

    def reset(self) -> None:
        """Count from nothing again, where that is meant to be possible."""
        self._refresh()
        reset(self._instrument)

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        self._refresh()
        return self._instrument.lines(native)


class Histogram(Described):
    """Sorts observations into buckets."""

    def __init__(
        self,
        name: str,
        words: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = DEFAULT_BUCKETS,
        *,
        native: bool = True,
        beside: tuple[float, ...] = (),
    ) -> None:
        """``beside`` are bounds of another, whose places are good here too (``Observations.observe_at``).

        One that is not ``native`` only has the buckets that are declared: where time is weighed, not events."""
        self.name, self._words, self._labels, self._buckets = name, words, tuple(labels), tuple(buckets)
        self._native, self._beside = native, beside
        self._series: dict[tuple[str, ...], Observations] = {} if labels else {(): self._make()}

    def labelled(self, *values: str) -> Observations:
        """The series with these labels, made when first asked for."""
        found = self._series.get(values)
        if found is None:
            values = _bounded(self.name, self._labels, values, len(self._series) < MAX_HISTOGRAMS)
            found = self._series.get(values)
            if found is None:
                found = self._series[values] = self._make()
        return found

    def _make(self) -> Observations:
        return Observations(self._buckets, self._beside)

    def reset(self) -> None:
        """Count from nothing again."""
        for series in self._series.values():
            series.forget()

    def numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """How often something was observed, by labels."""
        return ((values, series.count) for values, series in self._series.items() if series.count)

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        seen = [(values, series) for values, series in self._series.items() if series.count or not self._labels]
        return _histogram_lines(self.name, self._words, self._labels, self._buckets, seen, native and self._native)


class CollectedHistogram(Described):
    """A histogram whose series belong to others: label values and observations, asked for when the page is made."""

    def __init__(
        self,
        name: str,
        words: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        collect: Callable[[], Iterable[tuple[tuple[str, ...], Observations]]],
    ) -> None:
        self.name, self._words, self._labels = name, words, tuple(labels)
        self._buckets, self._collect = tuple(buckets), collect

    def reset(self) -> None:
        """Count from nothing again."""
        for _, series in self._collect():
            series.forget()

    def numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """How often something was observed, by labels."""
        return ((values, series.count) for values, series in self._collect() if series.count)

    def lines(self, native: bool = False) -> Iterable[str]:
        """The family's lines."""
        seen = [(values, series) for values, series in self._collect() if series.count]
        return _histogram_lines(self.name, self._words, self._labels, self._buckets, seen, native)


def _histogram_lines(
    name: str,
    words: str,
    labels: tuple[str, ...],
    buckets: tuple[float, ...],
    seen: list[tuple[tuple[str, ...], Observations]],
    native: bool,
) -> Iterator[str]:
    if not seen:
        return
    yield from head(name, words, "histogram")
    bounds = (*map(bound_text, buckets), "+Inf")
    for values, series in sorted(seen, key=lambda item: item[0]):
        shown = label_text(zip(labels, values, strict=True))
        opened = f"{shown[:-1]}," if shown else "{"
        reached = 0
        for bound, count in zip(bounds, series.counts, strict=True):
            reached += count
            yield f'{name}_bucket{opened}le="{bound}"}} {reached}'
        yield f"{name}_sum{shown} {number_text(series.total)}"
        yield f"{name}_count{shown} {reached}"
        if native:
            _, zeros, numbers = series.native()
            yield f'{name}{NATIVE}{opened}key="{ZERO}"}} {zeros}'
            for key, number in numbers.items():
                yield f'{name}{NATIVE}{opened}key="{key}"}} {number}'


def counted_durations(
    name: str, words: str, labels: Sequence[str], histogram: Histogram | CollectedHistogram
) -> CollectedGauge:
    """A counter of what a histogram observes, for those who look for it by that name."""
    return CollectedGauge(name, words, labels, histogram.numbers, "counter")


class Instrumented(Protocol):
    """A part of the server with instruments of its own."""

    def instruments(self) -> Iterable[Instrument]:
        """All of them."""
        ...


def read_aside(instruments: Iterable[Instrument]) -> None:
    """Ask all that reads files; to be called in a thread before a page is made."""
    for each in instruments:
        if isinstance(each, Aside) and each.aside:
            each.read()


@runtime_checkable
class Resettable(Protocol):
    """An instrument that can begin anew. Gauges cannot: what they say is true now."""

    def reset(self) -> None:
        """Count from nothing again."""
        ...


def reset(instrument: Instrument) -> None:
    """Have it count from nothing again, if it can."""
    if isinstance(instrument, Resettable):
        instrument.reset()


def render(instruments: Iterable[Instrument], *, native: bool = False) -> bytes:
    """The page that a scraper gets, families in the order of their names."""
    read_aside(instruments)
    return b"".join(render_pieces(instruments, native=native))


def render_pieces(instruments: Iterable[Instrument], *, native: bool = False) -> Iterator[bytes]:
    """The same in pieces that take little time each; what is counted meanwhile may be seen or not."""
    lines: list[str] = []
    for instrument in sorted(instruments, key=lambda each: each.name):
        for line in instrument.lines(native):
            lines.append(line)
            if len(lines) >= _LINES_A_PIECE:
                yield _joined(lines)
                lines.clear()
    yield _joined(lines)


def _joining(name: str) -> Joining:
    """Moments, and labels that only inform, are not summed over processes."""
    return "most" if name.endswith(("_timestamp_seconds", "_timestamp", "_info")) else "sum"


def _joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _bounded(name: str, labels: tuple[str, ...], values: tuple[str, ...], room: bool) -> tuple[str, ...]:
    """The labels to count these under."""
    if len(labels) != len(values):
        raise ValueError(f"{name} has {len(labels)} labels, not {len(values)}")
    if not room:
        CROWDED.value += 1
        return (OTHER,) * len(labels)
    if max(map(len, values)) > MAX_LABEL:
        CROWDED.value += 1
        return tuple(value if len(value) <= MAX_LABEL else OTHER for value in values)
    return values
