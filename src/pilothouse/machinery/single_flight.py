"""Many ask for the same thing at the same time, one fetches it, and all get the result or the error.

Who asks may give up; the fetch goes on for the others. A failure that nobody is left to hear of is logged. No fetch is
kept: whoever asks after it has ended starts another.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SingleFlight(Generic[K, T]):
    """The fetches that are under way. Belongs to one event loop; who has one closes it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._flights: dict[K, asyncio.Task[T]] = {}
        self._waiting: dict[K, int] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._flights

    async def get(self, key: K, fetch: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What ``fetch`` returns, or what the fetch of this key that is already under way does."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = asyncio.get_running_loop().create_task(fetch(), name=self._name)
            flight.add_done_callback(lambda ended: self._landed(key, ended))
        self._waiting[key] = self._waiting.get(key, 0) + 1
        try:
            return await asyncio.shield(flight)
        finally:
            if self._flights.get(key) is flight:
                self._waiting[key] -= 1

    async def close(self) -> None:
        """Break off whatever is under way; those who wait are cancelled."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        if flights:
            await asyncio.wait(flights)

    def _landed(self, key: K, flight: asyncio.Task[T]) -> None:
        del self._flights[key]
        error = None if flight.cancelled() else flight.exception()
        if not self._waiting.pop(key) and error is not None:
            logger.error("%s: failed after all who asked had gone", self._name, exc_info=error)
