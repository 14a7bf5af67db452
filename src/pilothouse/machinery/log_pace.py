"""How many lines the log gets from one place: what controllers say of users' objects comes as often as users like.

A hundred lines of a place are shown at once, then ten a second. The first that is left out is shown and says so; the
next that is shown tells how many were left out since.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from pilothouse.machinery.token_bucket import TokenBucket

_BURST: Final = 100
_RATE: Final = 10.0
_PACED: Final = ("pilothouse.controllers", "pilothouse.simulation")


class _Place:
    """One line of code that logs."""

    __slots__ = ("bucket", "left_out")

    def __init__(self, clock: Callable[[], float]) -> None:
        self.bucket, self.left_out = TokenBucket(_RATE, _BURST, clock), 0


class LogPace(logging.Filter):
    """A filter of handlers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._places: dict[tuple[str, int], _Place] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to show a message."""
        if not record.name.startswith(_PACED):
            return True
        where = record.pathname, record.lineno
        place = self._places.get(where) or self._places.setdefault(where, _Place(self._clock))
        if not place.bucket.take():
            place.left_out += 1
            if place.left_out == 1:
                _add(record, "more like this are left out")
            return place.left_out == 1
        if place.left_out > 1:
            _add(record, f"{place.left_out - 1} like this were left out")
        place.left_out = 0
        return True


def _add(record: logging.LogRecord, text: str) -> None:
    record.msg, record.args = f"{record.getMessage()} ({text})", None
