"""Calls that fail at random: refused, or done and their answer lost. For tests of what must converge all the same."""

from __future__ import annotations

from random import Random
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

_READS: Final = frozenset(("GET", "HEAD"))


class Faults:
    """Wraps a handler. ``chance`` is how often a call fails, as often before it is done as after."""

    def __init__(self, seed: int, chance: float = 0.3) -> None:
        self._rng, self.chance = Random(seed), chance
        self.count = 0

    def around(self, handler: Handler) -> Handler:
        """The handler with faults."""

        async def handle(request: APIRequest) -> Response:
            if self._rng.random() >= self.chance:
                return await handler(request)
            self.count += 1
            if request.method not in _READS and self._rng.random() < 0.5:
                await handler(request)
            raise errors.unavailable("a fault of the test")

        return handle
