"""Sets of completion indexes written as text: ``1,3-5,7``, strictly increasing and below the number of completions."""

from __future__ import annotations

from pilothouse.apis.integers import parse_integer
from pilothouse.machinery.go_quote import quote


class IndexesError(ValueError):
    """A text that is no such set."""


Interval = tuple[int, int]


def count_indexes(text: str, completions: int) -> int:
    """How many indexes there are. Raises ``IndexesError``."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        first, end = parse_interval(part, completions)
        if total and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def parse_interval(text: str, completions: int) -> Interval:
    """One index or a range of them. Raises ``IndexesError``."""
    parts = text.split("-")
    if len(parts) > 2:
        why = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {quote(text)} {why}")
    limits = [_index(part, completions) for part in parts]
    if len(limits) > 1 and limits[0] >= limits[1]:
        raise IndexesError(f"non-increasing order, previous: {limits[0]}, current: {limits[1]}")
    return limits[0], limits[-1]


def _index(text: str, completions: int) -> int:
    try:
        index = parse_integer(text, "Atoi")
    except ValueError:
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}") from None
    if index >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return index


def find_overlap(completed: str, failed: str, completions: int) -> int | None:
    """The first index that two sets share. Parts that cannot be understood are passed over."""
    if not completed or not failed:
        return None
    ours, theirs = _intervals(completed, completions), _intervals(failed, completions)
    at = other = 0
    while at < len(ours) and other < len(theirs):
        (low, high), (first, last) = ours[at], theirs[other]
        if low <= last and first <= high:
            return max(low, first)
        if low <= first:
            at += 1
        else:
            other += 1
    return None


def _intervals(text: str, completions: int) -> list[Interval]:
    found = []
    for part in text.split(","):
        try:
            found.append(parse_interval(part, completions))
        except IndexesError:
            continue
    return found
