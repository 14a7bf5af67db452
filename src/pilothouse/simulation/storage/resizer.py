"""Makes volumes as large as their claims ask for."""

from __future__ import annotations

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.events import EventRecorder
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.volumes.expander import wants_more
from pilothouse.controllers.volumes.facts import capacity_of, request_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.simulation.storage.drivers import driver_of, is_simulated


class SimulatedResizer:
    """Does what an external resizer of every simulated driver, and the kubelet after it, would do."""

    def __init__(self, client: Client, informers: InformerFactory, events: EventRecorder, clock: Clock) -> None:
        self._claims = informers.of("", "v1", "persistentvolumeclaims")
        self._volumes = informers.of("", "v1", "persistentvolumes")
        self._drivers = informers.of("storage.k8s.io", "v1", "csidrivers")
        self._claim_client = client.of("", "v1", "persistentvolumeclaims")
        self._volume_client = client.of("", "v1", "persistentvolumes")
        self._events = events
        self.controller: Controller[Key] = Controller(
            "simulated resizer",
            self._reconcile,
            wait_for=[self._claims, self._volumes, self._drivers],
            clock=clock,
        )
        self._claims.add_handler(self._seen, lambda old, new: self._seen(new), name="resizer")

    def _seen(self, claim: Object) -> None:
        if wants_more(claim):
            self.controller.queue.add(key_of(claim))

    async def _reconcile(self, key: Key) -> None:
        claim = self._claims.lister.get(*key)
        if claim is None or not wants_more(claim):
            return
        volume = self._volumes.lister.get("", claim["spec"].get("volumeName") or "")
        if volume is None or not is_simulated(driver_of(volume), self._drivers.lister):
            return
        name, wanted = volume["metadata"]["name"], request_of(claim)
        try:
            if capacity_of(volume) < wanted:
                self._events.event(claim, "Normal", "Resizing", f"External resizer is resizing volume {name}")
                await self._volume_client.patch("", name, {"spec": {"capacity": {"storage": str(wanted)}}})
            status = {"capacity": {"storage": str(wanted)}}
            await self._claim_client.patch(*key, {"status": status}, subresource="status")
        except errors.NotFound:
            return
        self._events.event(claim, "Normal", "VolumeResizeSuccessful", "Resize volume succeeded")
