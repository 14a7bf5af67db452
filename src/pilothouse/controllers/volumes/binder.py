"""The binder of persistent volumes: one worker for claims and volumes, woken by changes and every fifteen seconds.

One worker because a claim and a volume are two objects: what it decides about one holds for the other while it writes.
Several servers, or a scheduler that reserves volumes, are kept apart by resource versions.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal, NamedTuple

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller, Periodic
from pilothouse.controllers.runtime.indexer import key_of
from pilothouse.controllers.volumes.claim_sync import ClaimSync
from pilothouse.controllers.volumes.facts import PODS_BY_CLAIM, claim_key, phase_of, pods_by_claim
from pilothouse.controllers.volumes.newest import Newest
from pilothouse.controllers.volumes.volume_sync import VolumeSync
from pilothouse.controllers.volumes.writes import BindingWrites
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

_ACCOUNT: Final = "persistent-volume-binder"
_NAME: Final = "persistentvolume-binder-controller"
_RESYNC_SECONDS: Final = 15.0
_PENDING: Final = "pending-claims"


class Item(NamedTuple):
    """A claim or a volume."""

    kind: Literal["claim", "volume"]
    namespace: str
    name: str


def _pending(claim: Object) -> list[str]:
    """One value for all claims that wait for a volume."""
    return [""] if phase_of(claim) in ("", "Pending") else []


def start(context: ControllerContext) -> None:
    """Start the binder."""
    PersistentVolumeBinder(context).start(context.supervisor)


class PersistentVolumeBinder:
    """Brings claims and volumes together."""

    def __init__(self, context: ControllerContext) -> None:
        informers = context.informers
        self._volumes = informers.of("", "v1", "persistentvolumes")
        self._claims = informers.of("", "v1", "persistentvolumeclaims")
        self._classes = informers.of("storage.k8s.io", "v1", "storageclasses")
        self._pods = informers.of("", "v1", "pods")
        self._pods.add_index(PODS_BY_CLAIM, pods_by_claim)
        self._claims.add_index(_PENDING, _pending)
        self._wakes = False
        client = context.client(_ACCOUNT)
        self._newest_volumes, self._newest_claims = Newest(self._volumes.lister), Newest(self._claims.lister)
        events = context.recorder("persistentvolume-controller", _ACCOUNT)
        writes = BindingWrites(client, self._newest_volumes, self._newest_claims, events)
        self._claim_sync = ClaimSync(self._newest_volumes, self._classes.lister, self._pods.lister, writes)
        self._volume_sync = VolumeSync(client, self._newest_claims, writes)
        waits = [self._volumes, self._claims, self._classes, self._pods]
        self.controller: Controller[Item] = Controller(_NAME, self._reconcile, wait_for=waits, clock=context.clock)
        self._resync = Periodic(
            "resync of volumes", self._look_at_all, _RESYNC_SECONDS, at_once=False, clock=context.clock
        )
        self._claims.add_handler(self._claim_seen, self._claim_changed, self._claim_gone, name=_NAME)
        self._volumes.add_handler(self._volume_seen, self._volume_changed, self._volume_gone, name=_NAME)
        self._classes.add_handler(lambda obj: self._wake_pending(), lambda old, new: self._wake_pending(), name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to bind."""
        self.controller.start(supervisor)
        self._resync.start(supervisor)

    # Following

    def _claim_seen(self, claim: Object) -> None:
        self.controller.queue.add(Item("claim", *key_of(claim)))

    def _claim_changed(self, old: Object, new: Object) -> None:
        self._claim_seen(new)

    def _claim_gone(self, claim: Object) -> None:
        self._newest_claims.forget(key_of(claim))
        name = claim["spec"].get("volumeName")
        if name:
            self.controller.queue.add(Item("volume", "", name))

    def _volume_seen(self, volume: Object) -> None:
        self.controller.queue.add(Item("volume", *key_of(volume)))
        key = claim_key(volume)
        if key is not None:
            self.controller.queue.add(Item("claim", *key))
        elif phase_of(volume) == "Available":
            self._wake_pending()

    def _volume_changed(self, old: Object, new: Object) -> None:
        self._volume_seen(new)

    def _volume_gone(self, volume: Object) -> None:
        self._newest_volumes.forget(key_of(volume))
        key = claim_key(volume)
        if key is not None:
            self.controller.queue.add(Item("claim", *key))

    def _wake_pending(self) -> None:
        """A volume or a class has come that a waiting claim may want: they wake once, however many come in a turn."""
        if not self._wakes:
            self._wakes = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._wakes = False
        for claim in self._claims.lister.by_index(_PENDING, ""):
            self._claim_seen(claim)

    async def _look_at_all(self) -> None:
        for claim in self._claims.lister.list():
            self._claim_seen(claim)
        for volume in self._volumes.lister.list():
            self.controller.queue.add(Item("volume", *key_of(volume)))

    # Reconciling

    async def _reconcile(self, item: Item) -> None:
        try:
            if item.kind == "claim":
                claim = self._newest_claims.get(item.namespace, item.name)
                if claim is not None:
                    await self._claim_sync.sync(claim)
                return
            volume = self._newest_volumes.get("", item.name)
            if volume is not None:
                claim = await self._volume_sync.sync(volume)
                if claim is not None:
                    self._claim_seen(claim)
        except errors.NotFound:
            return  # it went meanwhile, and its going is told
