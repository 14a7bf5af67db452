"""Controllers in trouble: calls fail, the controllers are killed at any moment, and each state is held against rules.

async with TroubledControllers(seed, "node_ttl") as cluster:
    cluster.never(cluster.informers.of("", "v1", "nodes"), check)
    ...                                     what users do, while calls of controllers fail
    await cluster.survive(holds)            more of it, then all calls succeed: what should hold must come to hold
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, Final

import pytest

from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.sources import built_in_source
from pilothouse.machinery.objects import Object
from pilothouse.testing.fake_clock import FakeClock
from pilothouse.testing.faults import Faults
from pilothouse.testing.running_controllers import RunningControllers

SEEDS: Final = [1, 2, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 23))]
_CHANCE: Final = 0.3
_WAIT_SECONDS: Final = 60.0


class TroubledControllers(RunningControllers):
    """Controllers on a clock of which ``seconds`` pass whenever the test looks: back-offs cost the test no time."""

    def __init__(self, seed: int, *modules: str, seconds: float = 1.0, **more: Any) -> None:
        self.rng, self.faults = Random(seed), Faults(seed, _CHANCE)
        self.clock, self._seconds = FakeClock(start=int(time.time())), seconds
        self._broken: list[AssertionError] = []
        super().__init__(*modules, clock=self.clock, faults=self.faults, **more)

    def never(self, informer: Informer, check: Callable[[list[Object]], None]) -> None:
        """Hold all objects of a kind against a rule, which raises ``AssertionError``, at each change from now on."""

        def look() -> None:
            try:
                check(informer.lister.list())
            except AssertionError as error:
                self._broken.append(error)

        informer.add_handler(lambda obj: look(), lambda old, new: look(), lambda obj: look(), name="what must never be")

    def make_informers(self) -> InformerFactory:
        """Informers of their own: they know nothing of a life before."""
        storage = self.server.process.cluster.storage
        return InformerFactory(lambda gvr: built_in_source(storage, gvr), self.supervisor)

    async def restart(self) -> None:
        """Kill the controllers and start others, which find stored whatever those had sent.

        Elsewhere the lease of a leader runs out first.
        """
        await self.supervisor.close()
        mark = {"metadata": {"annotations": {"killed": str(self.rng.random())}}}
        await self.of("", "v1", "namespaces").patch("", "default", mark)
        await super().restart()

    async def suffer(self, kills: int = 3) -> None:
        """Let calls fail, and kill the controllers at random moments."""
        self.faults.chance = _CHANCE
        for _ in range(kills):
            await asyncio.sleep(self.rng.random() * 0.1)
            self.clock.advance(self._seconds)
            await self.restart()

    async def survive(self, holds: Callable[[], Awaitable[object]], kills: int = 3) -> None:
        """Suffer, then let all calls succeed and wait for what should hold. No rule may have been broken."""
        await self.suffer(kills)
        self.faults.chance = 0.0
        async with asyncio.timeout(_WAIT_SECONDS):
            while not self._broken and not await holds():
                self.clock.advance(self._seconds)
                await asyncio.sleep(0.02)
        assert not self._broken, self._broken[0]
        self.faults.chance = _CHANCE

    async def all(self, group: str, resource: str, version: str = "v1") -> list[Object]:
        """The objects of a kind, of all namespaces."""
        found: list[Object] = (await self.of(group, version, resource).list())["items"]
        return found


def once(of: Callable[[Object], Any]) -> Callable[[list[Object]], None]:
    """The rule that a value of each object, once there, stays as it is."""
    known: dict[str, Any] = {}

    def check(objects: list[Object]) -> None:
        for obj in objects:
            value = of(obj)
            if value:
                first = known.setdefault(obj["metadata"]["uid"], value)
                assert value == first, f"{obj['metadata']['name']}: {first} became {value}"

    return check
