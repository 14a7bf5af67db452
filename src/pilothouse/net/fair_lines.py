"""Lines of those who wait, one for each owner, which are served in rotation.

Controllers that make ten thousand objects in one namespace make hundreds of calls at a time; with all of them in one
line, the single call for another namespace would come last, each time it is its turn.

    lines   a: a1 a2 a3 …    b: b1        served: a1 b1 a2 a3 …
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FairLines(Generic[T]):
    """Each of those who wait is in one line, once."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[str, dict[T, None]] = {}
        """The one that is served next is first."""

    def __bool__(self) -> bool:
        return bool(self._lines)

    def __iter__(self) -> Iterator[T]:
        """All, in the order in which they would be served."""
        lines = [iter(line) for line in self._lines.values()]
        while lines:
            left = []
            for line in lines:
                for one in line:
                    yield one
                    left.append(line)
                    break
            lines = left

    def add(self, one: T, owner: str) -> None:
        """To the end of the owner's line."""
        self._lines.setdefault(owner, {})[one] = None

    def remove(self, one: T, owner: str) -> None:
        """Take one out who was served, or leaves; the owner's others come after those of all others."""
        line = self._lines.pop(owner, {})
        line.pop(one, None)
        if line:
            self._lines[owner] = line
