"""Pages of metrics of several processes as one: counters and histograms are summed, gauges as their declaration says.

    http_requests_total{code="200"} 5     http_requests_total{code="200"} 7     →     http_requests_total{code="200"} 12

Works on the text, because that is what processes can hand to each other; long pages are best joined in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pilothouse.machinery.metric_text import number_text
from pilothouse.machinery.metrics import Instrument

_WAYS: Final[dict[str, Callable[[float, float], float]]] = {
    "sum": lambda one, other: one + other,
    "most": max,
    "least": min,
}
_Family = tuple[list[str], dict[str, float]]


def ways_of_joining(instruments: Iterable[Instrument]) -> dict[str, str]:
    """Which families are not summed, and what is done with them instead."""
    ways = ((each.name, getattr(each, "joined", "sum")) for each in instruments)
    return {name: way for name, way in ways if way != "sum"}


def combine(way: str, one: float, other: float) -> float:
    """The value of two series that are shown as one."""
    return _WAYS[way](one, other)


def join_pages(pages: Sequence[bytes], ways: Mapping[str, str]) -> bytes:
    """One page, families in the order of their names; a series that only some have is as they have it."""
    joined: dict[str, _Family] = {}
    for page in pages:
        for name, (head, series) in _families(page.decode()).items():
            _, sums = joined.setdefault(name, (head, {}))
            way = ways.get(name, "sum")
            for labels, value in series.items():
                sums[labels] = combine(way, sums[labels], value) if labels in sums else value
    lines: list[str] = []
    for name in sorted(joined):
        head, series = joined[name]
        lines += head
        lines += (f"{labels} {number_text(value)}" for labels, value in series.items())
    return "".join(f"{line}\n" for line in lines).encode()


def _families(page: str) -> dict[str, _Family]:
    found: dict[str, _Family] = {}
    head: list[str] = []
    series: dict[str, float] = {}
    for line in page.splitlines():
        if line.startswith("# HELP "):
            head, series = [line], {}
            found[line.split(" ", 3)[2]] = head, series
        elif line.startswith("#"):
            head.append(line)
        else:
            labels, _, value = line.rpartition(" ")
            series[labels] = float(value)
    return found
