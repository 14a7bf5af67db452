"""Makes a volume for each claim that the binder leaves to a provisioner, and deletes what is released."""

from __future__ import annotations

from typing import Final, NamedTuple

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.events import EventRecorder, reference_to
from pilothouse.controllers.runtime.indexer import copy_of, key_of
from pilothouse.controllers.runtime.informers import InformerFactory
from pilothouse.controllers.volumes.facts import (
    CSI_NAMES,
    EXTERNAL_FINALIZER,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    annotations_of,
    class_of,
    phase_of,
    request_of,
)
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.simulation.storage.drivers import driver_of, is_simulated

_ATTACHED_SECONDS: Final = 1.0


class _Item(NamedTuple):
    kind: str
    namespace: str
    name: str


class SimulatedProvisioner:
    """Does what an external provisioner of every simulated driver would do."""

    def __init__(self, client: Client, informers: InformerFactory, events: EventRecorder, clock: Clock) -> None:
        self._claims = informers.of("", "v1", "persistentvolumeclaims")
        self._volumes = informers.of("", "v1", "persistentvolumes")
        self._classes = informers.of("storage.k8s.io", "v1", "storageclasses")
        self._drivers = informers.of("storage.k8s.io", "v1", "csidrivers")
        self._attachments = informers.of("storage.k8s.io", "v1", "volumeattachments")
        self._client, self._events = client.of("", "v1", "persistentvolumes"), events
        waits = [self._claims, self._volumes, self._classes, self._drivers, self._attachments]
        self.controller: Controller[_Item] = Controller(
            "simulated provisioner", self._reconcile, workers=4, wait_for=waits, clock=clock
        )
        self._claims.add_handler(self._claim_seen, lambda old, new: self._claim_seen(new), name="provisioner")
        self._volumes.add_handler(self._volume_seen, lambda old, new: self._volume_seen(new), name="provisioner")

    def _claim_seen(self, claim: Object) -> None:
        if not claim["spec"].get("volumeName") and PROVISIONER in annotations_of(claim):
            self.controller.queue.add(_Item("claim", *key_of(claim)))

    def _volume_seen(self, volume: Object) -> None:
        if PROVISIONED_BY in annotations_of(volume) and _may_go(volume):
            self.controller.queue.add(_Item("volume", *key_of(volume)))

    async def _reconcile(self, item: _Item) -> float | None:
        if item.kind == "claim":
            claim = self._claims.lister.get(item.namespace, item.name)
            if claim is not None:
                await self._provision(claim)
            return None
        volume = self._volumes.lister.get("", item.name)
        return None if volume is None else await self._delete(volume)

    async def _provision(self, claim: Object) -> None:
        storage_class = self._classes.lister.get("", class_of(claim))
        provisioner = annotations_of(claim).get(PROVISIONER, "")
        if storage_class is None or claim["spec"].get("volumeName") or claim["metadata"].get("deletionTimestamp"):
            return
        named = storage_class["provisioner"]
        if CSI_NAMES.get(named, named) != provisioner or not is_simulated(provisioner, self._drivers.lister):
            return
        waits = storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and SELECTED_NODE not in annotations_of(claim):
            return
        volume = volume_for(claim, storage_class, provisioner)
        where = "/".join(key_of(claim))
        text = f'External provisioner is provisioning volume for claim "{where}"'
        self._events.event(claim, "Normal", "Provisioning", text)
        try:
            await self._client.create(volume)
        except errors.AlreadyExists:
            return
        text = f"Successfully provisioned volume {volume['metadata']['name']}"
        self._events.event(claim, "Normal", "ProvisioningSucceeded", text)

    async def _delete(self, volume: Object) -> float | None:
        if not _may_go(volume) or not is_simulated(driver_of(volume), self._drivers.lister):
            return None
        metadata = volume["metadata"]
        name = metadata["name"]
        if any(each["spec"]["source"].get("persistentVolumeName") == name for each in self._attachments.lister.list()):
            return _ATTACHED_SECONDS
        try:
            if not metadata.get("deletionTimestamp"):
                await self._client.delete("", name, uid=metadata["uid"])
            elif EXTERNAL_FINALIZER in (metadata.get("finalizers") or ()):
                changed = copy_of(volume)
                changed["metadata"]["finalizers"].remove(EXTERNAL_FINALIZER)
                await self._client.update(changed)
        except errors.NotFound:
            return None
        return None


def _may_go(volume: Object) -> bool:
    """Whether a volume is released and to be deleted, or on its way out and bound to nothing."""
    if volume["metadata"].get("deletionTimestamp"):
        return phase_of(volume) != "Bound"
    return phase_of(volume) == "Released" and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"


def volume_for(claim: Object, storage_class: Object, driver: str) -> Object:
    """The volume that a driver would make for a claim."""
    name, wanted = f"pvc-{claim['metadata']['uid']}", claim["spec"]
    policy = storage_class.get("reclaimPolicy") or "Delete"
    metadata: Object = {"name": name, "annotations": {PROVISIONED_BY: driver}}
    if policy == "Delete":
        metadata["finalizers"] = [EXTERNAL_FINALIZER]
    source: Object = {"driver": driver, "volumeHandle": name}
    if (wanted.get("volumeMode") or "Filesystem") == "Filesystem":
        source["fsType"] = (storage_class.get("parameters") or {}).get("csi.storage.k8s.io/fstype") or "ext4"
    spec: Object = {
        "accessModes": list(wanted.get("accessModes") or ()),
        "capacity": {"storage": str(request_of(claim))},
        "claimRef": reference_to(claim, "PersistentVolumeClaim", "v1"),
        "csi": source,
        "persistentVolumeReclaimPolicy": policy,
        "storageClassName": class_of(claim),
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
    }
    if storage_class.get("mountOptions"):
        spec["mountOptions"] = list(storage_class["mountOptions"])
    if wanted.get("volumeAttributesClassName"):
        spec["volumeAttributesClassName"] = wanted["volumeAttributesClassName"]
    return {"metadata": metadata, "spec": spec}
