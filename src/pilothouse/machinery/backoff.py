"""How long to wait before trying again: longer after every failure of a key, and from the start after its success."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Backoff(Generic[K]):
    """Doubles from ``first`` seconds up to ``most``, for each key on its own."""

    def __init__(self, first: float = 0.005, most: float = 60.0) -> None:
        self._first, self._most = first, most
        self._failures: dict[K, int] = {}

    def next(self, key: K) -> float:
        """Count one more failure and say how long to wait."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        # Past sixty doublings every sensible limit is reached, and a float cannot overflow before that.
        return min(self._most, self._first * 2.0 ** min(failures, 60))

    def forget(self, key: K) -> None:
        """Start again: the key has succeeded."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often the key has failed since its last success."""
        return self._failures.get(key, 0)
