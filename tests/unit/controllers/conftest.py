"""A cluster for tests of controllers: a real server, the scheduler, two simulated nodes, and the controllers named.

Faults can be had: calls of controllers that are refused, collide, or succeed with their answer lost; and controllers
that are killed and started anew at any moment.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pilothouse.controllers.manager.catalogue import choose
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.client import Client, LoopbackClients, ResourceClient
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.runtime.sources import built_in_source
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.user import User
from pilothouse.simulation.nodes.pool import NodePool, PoolSettings
from pilothouse.simulation.nodes.streams import SimulatedStreams
from pilothouse.simulation.nodes.template import Template
from pilothouse.simulation.scheduler.scheduler import Scheduler
from pilothouse.testing.in_process import InProcessServer

_unique = iter(map(str, itertools.count())).__next__
NODES = ("node-1", "node-2")
FLAGS = ("--disable-admission-plugins=ServiceAccount", "--authorization-mode=Node,RBAC")
_WAIT_SECONDS = 120


class Faults:
    """Lets calls of controllers fail with some probability, until it is told to stop."""

    def __init__(self, rng: random.Random, chance: float) -> None:
        self._rng, self.chance = rng, chance
        self.uncertain = 0
        """Creations of which the controller cannot know whether they succeeded: at most one pod too many for each."""

    async def around(self, method: str, call: Callable[[], Awaitable[Object]]) -> Object:
        """Make a call, or fail before it or after it."""
        kind = self._rng.choice(("refused", "conflict", "lost")) if self._rng.random() < self.chance else ""
        if kind == "conflict" and method != "GET":
            raise errors.Conflict(409, "Conflict", "somebody else was faster")
        if kind == "refused" and method != "GET":
            raise errors.Unavailable(503, "ServiceUnavailable", "not now")
        try:
            answer = await call()
        except asyncio.CancelledError:
            self.uncertain += method == "POST"
            raise
        if kind == "lost" and method != "GET":
            self.uncertain += method == "POST"
            raise errors.Timeout(504, "Timeout", "the answer was lost")
        return answer


class FaultyClient(Client):
    """A client whose writes may fail."""

    def __init__(self, handler: Any, user: User, agent: str, faults: Faults) -> None:
        super().__init__(handler, user, agent)
        self._faults = faults

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: bytes = b"application/json",
        accept: bytes = b"application/json",
    ) -> Object:
        call = super().request
        return await self._faults.around(method, lambda: call(method, path, query, body, content_type, accept))


class FaultyClients(LoopbackClients):
    """Clients whose writes may fail."""

    def __init__(self, handler: Any, faults: Faults) -> None:
        super().__init__(handler)
        self._own_handler, self._faults = handler, faults

    def as_user(self, user: User, agent: str) -> Client:
        return FaultyClient(self._own_handler, user, agent, self._faults)


class World:
    """A server in which controllers run."""

    def __init__(
        self,
        server: InProcessServer,
        rows: tuple[str, ...],
        clock: Clock,
        faults: Faults | None,
        template: Template,
        schedules: bool,
    ) -> None:
        self._handler = server.process.cluster.handler
        storage = server.process.cluster.storage
        self.clients = LoopbackClients(self._handler)
        self._supervisor = Supervisor("test")
        self._rows, self._clock, self._faults, self._template, self._schedules = (
            rows,
            clock,
            faults,
            template,
            schedules,
        )
        self._storage = storage
        self._running: Supervisor | None = None
        self._informers = InformerFactory(lambda gvr: built_in_source(storage, gvr), self._supervisor)

    async def start(self, nodes: int) -> None:
        if nodes:
            if not self._schedules:
                Scheduler(self.clients.scheduler(), self._informers, self._supervisor).start()
            await NodePool(
                PoolSettings(nodes, template=self._template),
                self.clients,
                self._informers,
                self._supervisor,
                SimulatedStreams(),
            ).start()
            for number in range(nodes):  # new nodes are tainted until a controller finds them ready
                await self.of("", "nodes").patch("", f"node-{number + 1}", {"spec": {"taints": None}})
        self._informers.start()
        self.start_controllers()

    def start_controllers(self) -> None:
        """Run the controllers, on informers of their own: they know nothing of a life before."""
        self._running = Supervisor("controllers")
        storage = self._storage
        informers = InformerFactory(lambda gvr: built_in_source(storage, gvr), self._running)
        clients = self.clients if self._faults is None else FaultyClients(self._handler, self._faults)
        context = ControllerContext(informers, clients, self._running, self._clock)
        for row in choose(self._rows):
            row.start(context)
        if self._schedules:
            Scheduler(clients.scheduler(), informers, self._running).start()
        informers.start()

    async def kill_controllers(self) -> None:
        """End the controllers, whatever they are doing.

        What they have sent by then is stored before others begin: elsewhere the lease of a leader runs out first.
        """
        if self._running is not None:
            await self._running.close()
            mark = {"metadata": {"annotations": {"killed": _unique()}}}
            await self.of("", "namespaces").patch("", "default", mark)

    async def close(self) -> None:
        await self.kill_controllers()
        await self._supervisor.close()

    def of(self, group: str, resource: str) -> ResourceClient:
        """The API as the administrator sees it."""
        return self.clients.api_server().of(group, "v1", resource)

    async def list(self, group: str, resource: str, labels: str = "") -> list[Object]:
        items: list[Object] = (await self.of(group, resource).list("default", label_selector=labels))["items"]
        return items

    async def pods(self, labels: str = "") -> list[Object]:
        return await self.list("", "pods", labels)

    async def until(self, condition: Callable[[], Awaitable[Any]]) -> Any:
        """Wait for a condition; what it gave."""
        async with asyncio.timeout(_WAIT_SECONDS):
            while True:
                found = await condition()
                if found:
                    return found
                await asyncio.sleep(0.02)

    async def until_is(self, group: str, resource: str, name: str, test: Callable[[Object], Any]) -> Object:
        """Wait until an object is as it should be."""

        async def look() -> Object | None:
            found = await self.of(group, resource).get("default", name)
            return found if test(found) else None

        found: Object = await self.until(look)
        return found

    async def until_gone(self, group: str, resource: str, name: str) -> None:
        async def look() -> bool:
            try:
                await self.of(group, resource).get("default", name)
            except errors.NotFound:
                return True
            return False

        await self.until(look)

    async def until_gone_uid(self, name: str, uid: str) -> None:
        """Wait until a pod has gone, though another may have its name."""

        async def look() -> bool:
            return all(pod["metadata"]["uid"] != uid for pod in await self.pods())

        await self.until(look)

    async def until_event(self, reason: str) -> str:
        """Wait for an event; its message."""

        async def look() -> str | None:
            for event in await self.list("", "events"):
                if event["reason"] == reason:
                    return str(event["message"])
            return None

        message: str = await self.until(look)
        return message


StartWorld = Callable[..., Awaitable[World]]


@pytest.fixture(scope="session")
def bootstrapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a server that has run: one that starts on a copy has roles, namespaces and certificates already."""
    data = tmp_path_factory.mktemp("bootstrapped") / "data"
    with InProcessServer(*FLAGS, data_dir=data):
        return data


@pytest.fixture
async def start_world(bootstrapped: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StartWorld]:
    """``await start_world("job-controller", nodes=2, clock=..., faults=...)``.

    With ``schedules`` the scheduler is killed and fails with the controllers.
    """
    async with AsyncExitStack() as stack:

        async def start(
            *rows: str,
            nodes: int = 2,
            clock: Clock = SYSTEM,
            faults: Faults | None = None,
            template: Template | None = None,
            schedules: bool = False,
        ) -> World:
            data = tmp_path_factory.mktemp("world") / "data"
            await asyncio.to_thread(shutil.copytree, bootstrapped, data)
            server = await stack.enter_async_context(InProcessServer(*FLAGS, data_dir=data))
            world = World(server, rows, clock, faults, template or Template(), schedules)
            stack.push_async_callback(world.close)
            await world.start(nodes)
            return world

        yield start
