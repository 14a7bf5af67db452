"""Lines of those who wait, one for each owner, which are served in rotation.

Whoever makes ten thousand objects in one namespace has ten thousand keys in every queue; all of them in one line, a
single object of another namespace would come last, each time it is its turn.

    lines   a: a1 a2 a3 …    b: b1        served: a1 b1 a2 a3 …
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
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

    def pop(self) -> T:
        """Serve the first; the next is another owner's, if there is one. Raises StopIteration where nobody waits."""
        owner = next(iter(self._lines))
        line = self._lines.pop(owner)
        one = next(iter(line))
        del line[one]
        if line:
            self._lines[owner] = line
        return one

    def remove(self, one: T, owner: str) -> None:
        """Take one out who was served, or leaves; the owner's others come after those of all others."""
        line = self._lines.pop(owner, {})
        line.pop(one, None)
        if line:
            self._lines[owner] = line


def owner_of(key: Hashable) -> str:
    """The namespace that a controller's key names first; all other keys have one owner."""
    return key[0] if isinstance(key, tuple) and len(key) > 1 and isinstance(key[0], str) else ""
