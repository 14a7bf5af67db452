"""Calls that fail at random: refused, collided, or done and their answer lost. For tests of what must come right."""

from __future__ import annotations

from random import Random
from typing import Final

from pilothouse.endpoints.request import APIRequest
from pilothouse.filters.types import Handler
from pilothouse.machinery import errors
from pilothouse.net.messages import Response

_READS: Final = frozenset(("GET", "HEAD"))


class Faults:
    """Wraps a handler. ``chance`` is how often a call fails; of writes, as often before it is done as after."""

    def __init__(self, seed: int, chance: float = 0.3) -> None:
        self._rng, self.chance = Random(seed), chance
        self.count = 0

    def around(self, handler: Handler) -> Handler:
        """The handler with faults."""

        async def handle(request: APIRequest) -> Response:
            if self._rng.random() >= self.chance:
                return await handler(request)
            self.count += 1
            if request.method not in _READS:
                kind = self._rng.choice(("refused", "collided", "lost", "lost"))
                if kind == "lost":
                    await handler(request)
                elif kind == "collided":
                    raise errors.Conflict(409, "Conflict", "a fault of the test: somebody else was faster")
            raise errors.unavailable("a fault of the test")

        return handle
