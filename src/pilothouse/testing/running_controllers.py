"""Controllers at work on a real server inside a test.

    async with RunningControllers("volumes.binder", "volumes.claim_protection") as cluster:
        await cluster.of("", "v1", "persistentvolumes").create(...)
        await cluster.wait("", "v1", "persistentvolumes", "", "a", lambda obj: obj["status"]["phase"] == "Available")

They act as their own service accounts, under RBAC, as in a real cluster. Their clock is the machine's unless another is
given. With ``faults`` their calls fail at random; those of the test do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, Final, Self

from pilothouse.controllers.manager.context import ControllerContext, ManagerSettings
from pilothouse.controllers.runtime.client import LoopbackClients, ResourceClient
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.credentials.pki import Pki
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.testing.faults import Faults
from pilothouse.testing.in_process import InProcessServer

_WAIT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.01


class RunningControllers:
    """A server and some modules of ``pilothouse.controllers`` with a function ``start``."""

    def __init__(
        self,
        *modules: str,
        flags: tuple[str, ...] = ("--disable-admission-plugins=ServiceAccount", "--authorization-mode=Node,RBAC"),
        settings: ManagerSettings | Callable[[Pki], ManagerSettings] | None = None,
        clock: Clock = SYSTEM,
        faults: Faults | None = None,
    ) -> None:
        """``settings`` that name files of the server are made when these are there."""
        self._modules, self._given, self._clock = modules, settings or ManagerSettings(), clock
        self._faults = faults
        self.server = InProcessServer(*flags)
        self.supervisor = Supervisor("controllers of a test")

    @property
    def clients(self) -> LoopbackClients:
        """Clients of any user."""
        return LoopbackClients(self.server.process.cluster.handler)

    @property
    def settings(self) -> ManagerSettings:
        """What flags of kube-controller-manager set elsewhere."""
        return self._given if isinstance(self._given, ManagerSettings) else self._given(self.server.pki)

    @property
    def informers(self) -> InformerFactory:
        """The informers that the controllers share."""
        return self.server.process.cluster.informers

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        self.start(*self._modules)
        return self

    def start(self, *modules: str, settings: ManagerSettings | None = None) -> None:
        """Start more controllers."""
        handler = self.server.process.cluster.handler
        clients = LoopbackClients(handler if self._faults is None else self._faults.around(handler))
        informers = self.make_informers()
        context = ControllerContext(informers, clients, self.supervisor, self._clock, settings or self.settings)
        for module in modules:
            import_module(f"pilothouse.controllers.{module}").start(context)
        informers.start()

    def make_informers(self) -> InformerFactory:
        """The informers of controllers that are about to start: by default those that all share."""
        return self.informers

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.supervisor.close()
        await self.server.__aexit__(kind, error, trace)

    async def restart(self) -> None:
        """Kill the controllers in the middle of whatever they do, and start them again."""
        await self.supervisor.close()
        self.supervisor = Supervisor("controllers of a test")
        self.start(*self._modules)

    def of(self, group: str, version: str, resource: str) -> ResourceClient:
        """The objects of a resource, as the server itself sees them."""
        return self.clients.api_server().of(group, version, resource)

    async def wait(
        self, client: ResourceClient, namespace: str, name: str, condition: Callable[[Object], Any] = bool
    ) -> Object:
        """Return an object when it is there and meets a condition."""
        async with asyncio.timeout(_WAIT_SECONDS):
            while True:
                try:
                    obj = await client.get(namespace, name)
                except errors.NotFound:
                    obj = {}
                if obj and condition(obj):
                    return obj
                await asyncio.sleep(_LOOK_SECONDS)

    async def wait_gone(self, client: ResourceClient, namespace: str, name: str) -> None:
        """Return when an object is not there any more."""
        async with asyncio.timeout(_WAIT_SECONDS):
            while True:
                try:
                    await client.get(namespace, name)
                except errors.NotFound:
                    return
                await asyncio.sleep(_LOOK_SECONDS)

    async def wait_event(self, namespace: str, reason: str, name: str = "") -> Object:
        """Return the event of a reason, about an object of a name, when it is there."""
        events = self.of("", "v1", "events")
        async with asyncio.timeout(_WAIT_SECONDS):
            while True:
                async for event in events.items(namespace):
                    if event["reason"] == reason and name in ("", event["involvedObject"]["name"]):
                        return event
                await asyncio.sleep(_LOOK_SECONDS)
