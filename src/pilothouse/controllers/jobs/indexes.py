"""Sets of completion indexes, kept as ranges: a job of a hundred thousand indexes has a status of a few bytes.

{0, 1, 2, 5, 7, 8}  ◄──►  "0-2,5,7,8"
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from pilothouse.machinery.objects import Object

INDEX: Final = "batch.kubernetes.io/job-completion-index"
Range = tuple[int, int]
_MOST_DIGITS: Final = 18


class Indexes:
    """An unchanging set of indexes."""

    __slots__ = ("_firsts", "_shown", "ranges")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        merged: list[Range] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        self.ranges = tuple(merged)
        self._firsts = [first for first, _ in merged]
        self._shown: str | None = None

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Indexes:
        """The set of some indexes."""
        return cls((index, index) for index in indexes)

    @classmethod
    def parse(cls, text: str, completions: int) -> Indexes:
        """Read a status or a rule; what makes no sense, or is beyond the completions, is passed over."""
        return cls(_read(text, completions))

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self._firsts, index) - 1
        return at >= 0 and index <= self.ranges[at][1]

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def __or__(self, other: Indexes) -> Indexes:
        if not other.ranges:
            return self
        return Indexes((*self.ranges, *other.ranges)) if self.ranges else other

    def __str__(self) -> str:
        if self._shown is None:
            self._shown = ",".join(map(_text, self.ranges))
        return self._shown

    def shared_with(self, other: Indexes) -> int:
        """How many indexes are in both."""
        count = at = 0
        for first, last in self.ranges:
            while at < len(other.ranges) and other.ranges[at][1] < first:
                at += 1
            next_at = at
            while next_at < len(other.ranges) and other.ranges[next_at][0] <= last:
                count += min(last, other.ranges[next_at][1]) - max(first, other.ranges[next_at][0]) + 1
                next_at += 1
        return count

    def missing(self, below: int, count: int) -> list[int]:
        """The first ``count`` indexes below a limit that are not in the set."""
        found: list[int] = []
        candidate = 0
        for first, last in (*self.ranges, (below, below)):
            while candidate < min(first, below) and len(found) < count:
                found.append(candidate)
                candidate += 1
            if len(found) == count:
                break
            candidate = max(candidate, last + 1)
        return found


def _read(text: str, completions: int) -> Iterator[Range]:
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not _is_number(first) or (last and not _is_number(last)):
            continue
        if int(first) >= completions:
            return
        yield int(first), min(int(last or first), completions - 1)


def _is_number(text: str) -> bool:
    """Whether it is one that an index may be; Python reads no text of thousands of digits."""
    return text.isdigit() and text.isascii() and len(text) <= _MOST_DIGITS


def _text(range: Range) -> str:
    first, last = range
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"


def index_of(pod: Object) -> int | None:
    """The completion index of a pod; None if it has none."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(text) if _is_number(text) else None


def indexes_of(pods: Iterable[Object]) -> Indexes:
    """The completion indexes that pods have."""
    return Indexes.of(index for pod in pods if (index := index_of(pod)) is not None)
