"""One series of a histogram: counted once for buckets as declared and for native ones, which grow by a constant factor.

The bounds of both are merged, so that an observation costs one search and one addition; which bucket of either kind a
place between two bounds belongs to is worked out when the page is made.

    declared:         0.1                         1
    native:     …  0.0917   0.1  (0.1003)  …  0.917   1   …
    merged:     …  0.0917 | 0.1 | 0.1003 | …  0.917 | 1 | …

Native bounds are those of Prometheus: 2^(key/8) for every key. Values between nothing and the least of them, and beyond
the greatest, are counted with their neighbours: they are fractions of a nanosecond and terabytes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple

SCHEMA: Final = 3
"""Of native buckets: each power of two is divided in 2^3."""
ZERO_THRESHOLD: Final = 2.0**-128
"""What is not above is in the zero bucket."""
MAX_BUCKETS: Final = 160
"""More native buckets than these are made fewer and wider."""
_LEAST_SCHEMA: Final = -4
_KEYS: Final = range(-31 * 2**SCHEMA, 41 * 2**SCHEMA + 1)


class Places(NamedTuple):
    """The places between merged bounds."""

    edges: tuple[float, ...]
    declared: tuple[int, ...]
    """The bucket of each place, by its number."""
    bounds: int
    """How many bounds were declared."""


class NativeBuckets(NamedTuple):
    """The native form: numbers by key, at this resolution."""

    schema: int
    zeros: int
    numbers: dict[int, int]


def native_bound(key: int) -> float:
    """The greatest value of a native bucket."""
    power, step = divmod(key, 2**SCHEMA)
    return math.ldexp(2.0 ** (step / 2**SCHEMA), power)


@cache
def _places(bounds: tuple[float, ...], others: tuple[float, ...]) -> Places:
    edges = tuple(sorted({ZERO_THRESHOLD, *_native_bounds(), *bounds, *others}))
    declared = (*(bisect_left(bounds, edge) for edge in edges), len(bounds))
    return Places(edges, declared, len(bounds))


@cache
def _native_bounds() -> tuple[float, ...]:
    return tuple(map(native_bound, _KEYS))


class Observations:
    """One series of a histogram."""

    __slots__ = ("_edges", "_numbers", "_places", "total", "zeros")

    def __init__(self, bounds: tuple[float, ...], others: tuple[float, ...] = ()) -> None:
        """With the bounds of ``others`` between its own, places are those of the others as well; see ``observe_at``."""
        self._places = _places(bounds, others)
        self._edges = self._places.edges
        self._numbers: dict[int, int] = {}
        self.zeros = 0
        """How many took no time, in addition to those observed. Whoever counts these adds here, without a call."""
        self.total = 0.0

    def observe(self, value: float) -> int:
        """One more; its place. Comparing with whole numbers is slow: large ones are better made floats before."""
        self.total += value
        place = bisect_left(self._edges, value)
        try:
            self._numbers[place] += 1
        except KeyError:
            self._numbers[place] = 1
        return place

    def observe_at(self, place: int, value: float) -> None:
        """One more, which was found to be at this place by somebody with the same edges."""
        self.total += value
        try:
            self._numbers[place] += 1
        except KeyError:
            self._numbers[place] = 1

    def observe_many(self, value: float, number: int) -> None:
        """So many more of the same."""
        place = bisect_left(self._edges, value)
        self._numbers[place] = self._numbers.get(place, 0) + number
        self.total += value * number

    def forget(self) -> None:
        """Begin anew."""
        self._numbers.clear()
        self.zeros, self.total = 0, 0.0

    @property
    def count(self) -> int:
        """How many there were."""
        return self.zeros + sum(self._numbers.values())

    @property
    def counts(self) -> list[int]:
        """How many were in each bucket as declared, and above all of them."""
        found = [0] * (self._places.bounds + 1)
        declared = self._places.declared
        found[declared[0]] += self.zeros
        for place, number in list(self._numbers.items()):
            found[declared[place]] += number
        return found

    def native(self) -> NativeBuckets:
        """The same in native buckets, however many these are."""
        zeros, numbers = self.zeros, dict[int, int]()
        for place, number in list(self._numbers.items()):
            if place < len(self._edges) and self._edges[place] <= ZERO_THRESHOLD:
                zeros += number
            else:
                key = self._key(place)
                numbers[key] = numbers.get(key, 0) + number
        return NativeBuckets(SCHEMA, zeros, numbers)

    def _key(self, place: int) -> int:
        edge = self._edges[place] if place < len(self._edges) else math.inf
        return _KEYS[0] + bisect_left(_native_bounds(), edge)

    @classmethod
    def joined(cls, parts: Sequence[Observations]) -> Observations:
        """Those of all, which have the same bounds."""
        made = cls.__new__(cls)
        made._places = parts[0]._places
        made._edges = made._places.edges
        made._numbers = {}
        for part in parts:
            for place, number in list(part._numbers.items()):
                made._numbers[place] = made._numbers.get(place, 0) + number
        made.zeros = sum(part.zeros for part in parts)
        made.total = sum(part.total for part in parts)
        return made


def widened(buckets: NativeBuckets) -> NativeBuckets:
    """As many as may be shown: two neighbours become one, until they are few enough."""
    while len(buckets.numbers) > MAX_BUCKETS and buckets.schema > _LEAST_SCHEMA:
        fewer: dict[int, int] = {}
        for key, number in buckets.numbers.items():
            wide = -(-key // 2)
            fewer[wide] = fewer.get(wide, 0) + number
        buckets = NativeBuckets(buckets.schema - 1, buckets.zeros, fewer)
    return buckets


def spans(numbers: dict[int, int]) -> Iterator[tuple[int, list[int]]]:
    """Neighbouring buckets together: the first one's distance from those before, and the numbers of each.

    One or two empty buckets between others are shown as such, as a new span would take more room.
    """
    keys = sorted(numbers)
    following: int | None = None
    offset, run = 0, list[int]()
    for key in keys:
        gap = key if following is None else key - following
        if following is None or gap > _SHORT_GAP:
            if run:
                yield offset, run
            offset, run = gap, []
        else:
            run += [0] * gap
        run.append(numbers[key])
        following = key + 1
    if run:
        yield offset, run


_SHORT_GAP: Final = 2
