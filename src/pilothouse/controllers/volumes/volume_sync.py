"""What is to happen to a volume next: available, bound, released, and then kept or deleted by its reclaim policy."""

from __future__ import annotations

import re
from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.volumes.facts import (
    MIGRATED_TO,
    PROVISIONED_BY,
    annotations_of,
    claim_key,
    phase_of,
)
from pilothouse.controllers.volumes.matching import modes_differ
from pilothouse.controllers.volumes.newest import Newest
from pilothouse.controllers.volumes.writes import BindingWrites
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_DELETABLE_PATH: Final = re.compile(r"/tmp/.+")
_OURS: Final = "kubernetes.io/"


class VolumeSync:
    """Brings volumes forward."""

    def __init__(self, client: Client, claims: Newest, writes: BindingWrites) -> None:
        self._volume_client = client.of("", "v1", "persistentvolumes")
        self._claim_client = client.of("", "v1", "persistentvolumeclaims")
        self._claims, self._writes = claims, writes

    async def sync(self, volume: Object) -> Object | None:
        """Do what is to be done next; a claim that should be looked at in turn."""
        reference = volume["spec"].get("claimRef")
        if reference is None or not reference.get("uid"):
            await self._writes.set_volume_phase(volume, "Available")
            return None
        claim = await self._claim_of(volume)
        if claim is None:
            await self._release(volume)
        elif not claim["spec"].get("volumeName"):
            if not modes_differ(volume, claim):
                return claim
            self._tell_of_modes(volume, claim)
        elif claim["spec"]["volumeName"] == volume["metadata"]["name"]:
            await self._writes.set_volume_phase(volume, "Bound")
        elif PROVISIONED_BY in annotations_of(volume) and _policy(volume) == "Delete":
            await self._release(volume)
        else:
            await self._writes.unbind(volume)
        return None

    async def _claim_of(self, volume: Object) -> Object | None:
        """The claim that a volume names. That it has gone is believed only of the server itself."""
        key, uid = claim_key(volume), volume["spec"]["claimRef"]["uid"]
        if key is None:
            return None
        claim = self._claims.get(*key)
        if claim is not None and claim["metadata"]["uid"] == uid:
            return claim
        if claim is None and phase_of(volume) in ("Released", "Failed"):
            return None
        try:
            claim = await self._claim_client.get(*key)
        except errors.NotFound:
            return None
        return claim if claim["metadata"]["uid"] == uid else None

    def _tell_of_modes(self, volume: Object, claim: Object) -> None:
        why = "due to incompatible volumeMode."
        text = f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim["metadata"]["name"]}" {why}'
        self._writes.tell(volume, "Warning", "VolumeMismatch", text)
        text = f'Cannot bind PersistentVolume "{volume["metadata"]["name"]}" to requested PersistentVolumeClaim {why}'
        self._writes.tell(claim, "Warning", "VolumeMismatch", text)

    async def _release(self, volume: Object) -> None:
        if phase_of(volume) not in ("Released", "Failed"):
            volume = await self._writes.set_volume_phase(volume, "Released")
        if MIGRATED_TO in annotations_of(volume):
            return
        policy = _policy(volume)
        if policy == "Delete":
            await self._delete(volume)
        elif policy == "Recycle":
            await self._writes.fail_volume(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")

    async def _delete(self, volume: Object) -> None:
        why = undeletable(volume)
        if why is None:
            return
        if why:
            await self._writes.fail_volume(volume, "VolumeFailedDelete", why)
            return
        metadata = volume["metadata"]
        try:
            await self._volume_client.delete("", metadata["name"], uid=metadata["uid"])
        except errors.NotFound:
            return


def undeletable(volume: Object) -> str | None:
    """Why a released volume cannot be deleted here; empty if it can, None if that is its provisioner's business.

    Files of a host path are left alone: they may be anybody's.
    """
    spec, name = volume["spec"], volume["metadata"]["name"]
    provisioner = annotations_of(volume).get(PROVISIONED_BY)
    if provisioner:
        return f"no volume plugin matched name: {provisioner}" if provisioner.startswith(_OURS) else None
    if "csi" in spec:
        return None
    if "hostPath" in spec:
        path = spec["hostPath"]["path"]
        if _DELETABLE_PATH.fullmatch(path):
            return ""
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    return f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'


def _policy(volume: Object) -> str:
    return volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"
