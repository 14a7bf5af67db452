"""Leases for keys that expire, each shared by the keys of about a minute.

A lease costs etcd much more than a key, and events come by the thousand. So a lease lives a little longer than asked
for, and is attached to further keys as long as it still lasts as long as they want, and not too much longer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from pilothouse.machinery.observations import Observations

LARGEST_SHARE: Final = 0.05
"""Of the lifetime asked for, how much longer a key may live for the sake of sharing."""
MOST_KEYS: Final = 1000
SHARE_BUCKETS: Final = (10, 50, 100, 500, 1000, 2500, 5000)

Grant = Callable[[int], Awaitable[int]]
"""Grants a lease of so many seconds and gives its identity."""


class LeasePool:
    """The newest lease, and whether it fits."""

    def __init__(self, grant: Grant, reuse_seconds: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._grant, self._reuse_seconds, self._clock = grant, reuse_seconds, clock
        self._lease = self._keys = 0
        self.shares = Observations(SHARE_BUCKETS)
        """How many keys each lease had that is no longer used for more."""
        self._expires = 0.0
        self._granting = asyncio.Lock()

    async def lease_for(self, seconds: int) -> int:
        """A lease that lasts at least so long, counted as used once."""
        async with self._granting:
            extra = min(self._reuse_seconds, int(LARGEST_SHARE * seconds))
            now = self._clock()
            self._keys += 1
            if now + seconds < self._expires <= now + seconds + extra and self._keys <= MOST_KEYS:
                return self._lease
            if self._lease:
                self.shares.observe(self._keys - 1)
            self._lease = await self._grant(seconds + extra)
            self._expires, self._keys = self._clock() + seconds + extra, 1
            return self._lease

    def forget(self, lease: int) -> None:
        """A lease turned out to have ended."""
        if lease == self._lease:
            self._expires = 0.0
