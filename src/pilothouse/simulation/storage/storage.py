"""The storage of a cluster with simulated nodes: a default class, and whatever drivers do elsewhere."""

from __future__ import annotations

from typing import Final

from pilothouse.authn.loopback import API_SERVER
from pilothouse.controllers.runtime.client import LoopbackClients
from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.events import EventBroadcaster
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.volumes.facts import is_default_class
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.simulation.storage.attacher import SimulatedAttacher
from pilothouse.simulation.storage.drivers import OWN_DRIVER
from pilothouse.simulation.storage.provisioner import SimulatedProvisioner
from pilothouse.simulation.storage.resizer import SimulatedResizer

_DEFAULT_CLASS: Final[Object] = {
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": OWN_DRIVER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}


class SimulatedStorage:
    """Provisions, attaches and resizes for every driver that nobody has registered."""

    def __init__(
        self,
        clients: LoopbackClients,
        informers: InformerFactory,
        supervisor: Supervisor,
        *,
        clock: Clock = SYSTEM,
    ) -> None:
        client = clients.as_user(API_SERVER, "simulated-storage")
        events = EventBroadcaster(client, supervisor, clock).recorder(OWN_DRIVER)
        self._classes = client.of("storage.k8s.io", "v1", "storageclasses")
        self._supervisor = supervisor
        self._controllers = (
            SimulatedProvisioner(client, informers, events, clock),
            SimulatedAttacher(client, informers, clock),
            SimulatedResizer(client, informers, events, clock),
        )

    async def start(self) -> None:
        """See to a default class, and begin."""
        await self._ensure_default_class()
        for each in self._controllers:
            each.controller.start(self._supervisor)

    async def _ensure_default_class(self) -> None:
        """A cluster that has a default class of its own keeps it alone."""
        if any([is_default_class(each) async for each in self._classes.items()]):
            return
        try:
            await self._classes.create(_DEFAULT_CLASS)
        except errors.AlreadyExists:
            return
