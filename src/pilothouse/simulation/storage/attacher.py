"""Says of each attachment that it is done, and lets go of it when it is to be undone."""

from __future__ import annotations

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.simulation.storage.drivers import is_simulated


class SimulatedAttacher:
    """Does what an external attacher of every simulated driver would do."""

    def __init__(self, client: Client, informers: InformerFactory, clock: Clock) -> None:
        self._attachments = informers.of("storage.k8s.io", "v1", "volumeattachments")
        self._drivers = informers.of("storage.k8s.io", "v1", "csidrivers")
        self._client = client.of("storage.k8s.io", "v1", "volumeattachments")
        self.controller: Controller[Key] = Controller(
            "simulated attacher", self._reconcile, wait_for=[self._attachments, self._drivers], clock=clock
        )
        self._attachments.add_handler(self._seen, lambda old, new: self._seen(new), name="attacher")

    def _seen(self, attachment: Object) -> None:
        if not _is_attached(attachment):
            self.controller.queue.add(key_of(attachment))

    async def _reconcile(self, key: Key) -> None:
        attachment = self._attachments.lister.get(*key)
        if attachment is None or _is_attached(attachment) or attachment["metadata"].get("deletionTimestamp"):
            return
        if not is_simulated(attachment["spec"]["attacher"], self._drivers.lister):
            return
        try:
            await self._client.update_status({**copy_of(attachment), "status": {"attached": True}})
        except errors.NotFound:
            return


def _is_attached(attachment: Object) -> bool:
    return bool((attachment.get("status") or {}).get("attached"))
