"""Handlers that come late are told of objects once all indexes are whole.

Handlers look things up: that of nodes asks for the pods of a node. If the index of pods were not whole by then, it
would have to be finished in one turn, which takes 6 µs an object. So all informers of a process have a gate, which is
closed while an index of any of them lacks objects.
"""

from __future__ import annotations

from collections.abc import Callable


class IndexGate:
    """Counts indexes that are not whole."""

    def __init__(self) -> None:
        self._unfinished = 0
        self._waiting: list[Callable[[], None]] = []

    @property
    def is_open(self) -> bool:
        """Whether all indexes are whole."""
        return not self._unfinished

    def close(self) -> None:
        """An index was begun."""
        self._unfinished += 1

    def open(self) -> None:
        """One of them is whole."""
        self._unfinished -= 1
        if not self._unfinished:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each()

    def wait(self, call: Callable[[], None]) -> None:
        """Call when the gate opens. Somebody else may close it again in the same moment."""
        self._waiting.append(call)
