"""A bucket of tokens: what lets a burst through, and then so much a second."""

from __future__ import annotations

from collections.abc import Callable


class TokenBucket:
    """Lets through a burst at once, and so many a second from then on."""

    __slots__ = ("_burst", "_clock", "_rate", "_then", "_tokens")

    def __init__(self, rate: float, burst: int, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._then = float(burst), clock()

    def take(self) -> bool:
        """Take one token if there is one."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._then) * self._rate)
        self._then = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
