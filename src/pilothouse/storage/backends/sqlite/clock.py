"""The store's own time: it agrees with the system's when a store is first opened, and never goes back.

Keys live for a while and history is kept for a while; both are intervals, which setting the system's clock must neither
stop nor shorten. So time is counted from the start of the process on by a clock that nobody sets. Across restarts it is
remembered with the data: a system that wakes up in the past goes on where the store was.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Final

REMEMBERED_EVERY: Final = 60.0


class StoreClock:
    """Seconds since the epoch, more or less."""

    def __init__(self, source: Callable[[], float] | None = None) -> None:
        self._shift = 0.0
        if source is None:
            source, self._shift = time.monotonic, time.time() - time.monotonic()
        self._source = source
        self._remembered = self()

    def __call__(self) -> float:
        return self._source() + self._shift

    def recall(self, connection: sqlite3.Connection) -> None:
        """Go on from where the store was, if that is later."""
        row = connection.execute("SELECT revision FROM bounds WHERE name = 'clock'").fetchone()
        if row is not None:
            self._shift += max(0.0, row[0] - self())
        self._remembered = self()

    @property
    def is_due(self) -> bool:
        """Whether it is time to remember where the store is."""
        return self() - self._remembered >= REMEMBERED_EVERY

    def remember(self, connection: sqlite3.Connection) -> None:
        """Note with the data how late it is."""
        now = int(self())
        connection.execute("INSERT OR REPLACE INTO bounds (name, revision) VALUES ('clock', ?)", (now,))
        self._remembered = now
