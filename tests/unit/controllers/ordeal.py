"""Trouble for controllers: calls that fail, controllers killed at any moment, and eyes on what any client sees."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

from .conftest import Faults, World

Check = Callable[[list[Object]], None]


class Ordeal:
    """A world with faults, in which objects are watched: each state that any client could see is checked."""

    def __init__(self, world: World, faults: Faults, rng: random.Random) -> None:
        self.world, self.faults, self.rng = world, faults, rng
        self._supervisor = Supervisor("ordeal")
        self._failures: list[BaseException] = []

    def watch(self, check: Check, group: str = "", resource: str = "pods") -> None:
        """Hold every state of the pods, or of other objects, against an invariant from now on."""

        async def follow() -> None:
            objects: dict[str, Object] = {}
            listed = await self.world.of(group, resource).list("default")
            version = listed["metadata"]["resourceVersion"]
            async with self.world.of(group, resource).watch("default", resource_version=version) as events:
                async for type, obj in events:
                    if type == "DELETED":
                        objects.pop(obj["metadata"]["name"], None)
                    else:
                        objects[obj["metadata"]["name"]] = obj
                    try:
                        check(list(objects.values()))
                    except AssertionError as error:
                        self._failures.append(error)
                        return

        self._supervisor.spawn("watch", follow())

    async def trouble(self, rounds: int) -> None:
        """Kill the controllers at random moments and start them anew, then let all calls succeed."""
        for _ in range(rounds):
            await asyncio.sleep(self.rng.random() * 0.5)
            await self.world.kill_controllers()
            self.world.start_controllers()
        self.faults.chance = 0.0

    async def until(self, condition: Callable[[], Awaitable[Any]]) -> None:
        await self.world.until(condition)
        await self._supervisor.close()
        assert not self._failures, self._failures[0]
