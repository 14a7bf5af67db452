"""How much pointless work one client may cause before its connection ends.

HTTP/2 lets a client ask for work that serves nobody: requests that are cancelled at once (CVE-2023-44487), pings,
settings, priorities, empty frames, windows that open byte by byte. Each is cheap, so none is forbidden; their number
counts against what the connection was good for. Useful work and time give back.
"""

from __future__ import annotations

from typing import Final

from pilothouse.net.http2 import frames
from pilothouse.net.http2.frames import ConnectionFailure

RESET: Final = 20  # a request that was begun for nothing
FRAME: Final = 1

_LIMIT: Final = 10_000
_A_SECOND: Final = 2_000
_USEFUL: Final = 4  # what an answer or a full piece of one makes good: clients acknowledge them


class Patience:
    """The account of one connection."""

    __slots__ = ("_at", "_spent", "_useful_seen")

    def __init__(self, now: float) -> None:
        self._spent = 0
        self._useful_seen = 0
        self._at = now

    def spend(self, cost: int, useful: int) -> None:
        """Book what a client did; `useful` is what the connection was good for in all. ConnectionFailure beyond all."""
        self._spent += cost
        if self._spent > _LIMIT:
            self._spent = max(0, self._spent - _USEFUL * (useful - self._useful_seen))
            self._useful_seen = useful
            if self._spent > _LIMIT:
                raise ConnectionFailure(frames.ENHANCE_YOUR_CALM, "too much for nothing")

    def recover(self, now: float) -> None:
        """Time passes."""
        self._spent = max(0, self._spent - int(_A_SECOND * (now - self._at)))
        self._at = now
