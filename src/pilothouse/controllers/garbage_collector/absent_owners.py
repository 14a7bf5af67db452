"""Owners that are not there: which are known to be absent, and how fast the API is asked for others.

Anybody may name owners that never existed, thousands in one object, and each has to be asked for before it counts as
absent. kube-controller-manager is held to some dozens of requests a second whatever there is to do. Here a thousand
are asked for at once, which is more than clusters have in an ordinary hour, and then a hundred a second.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.garbage_collector.graph import Identity
from pilothouse.controllers.runtime.clock import Clock

_MOST_KNOWN: Final = 16 * 1024
_BURST: Final = 1_000
_RATE: Final = 100.0


class AbsentOwners:
    """What the API said of owners, for some thousands of the latest; a uid never comes back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], None] = {}
        self._turns, self._seen = float(_BURST), clock.monotonic()

    def __contains__(self, owner: Identity) -> bool:
        return (owner.uid, owner.namespace) in self._known

    def add(self, owner: Identity) -> None:
        """It is not there, for dependents in its namespace."""
        self._known[(owner.uid, owner.namespace)] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    async def take_turn(self) -> None:
        """Wait until another owner may be asked for."""
        now = self._clock.monotonic()
        self._turns = min(float(_BURST), self._turns + (now - self._seen) * _RATE) - 1.0
        self._seen = now
        if self._turns < 0.0:
            await self._clock.sleep(-self._turns / _RATE)
