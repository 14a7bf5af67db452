"""What the binder writes: a volume and a claim that name each other, and their phases.

Binding is four writes, and it may end after any of them. The order makes what is left of a broken one harmless: the
volume names the claim first, so nobody else takes it, and whoever looks next writes what is missing.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.events import EventRecorder, EventType, reference_to
from pilothouse.controllers.runtime.indexer import copy_of
from pilothouse.controllers.volumes.facts import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    LEGACY_PROVISIONER,
    PROVISIONER,
    annotations_of,
    is_reserved_for,
    phase_of,
)
from pilothouse.controllers.volumes.newest import Newest
from pilothouse.machinery import quantity
from pilothouse.machinery.objects import Object

_BEFORE_RESIZE: Final = "volume.alpha.kubernetes.io/pre-resize-capacity"


class BindingWrites:
    """Writes volumes and claims, and remembers what it wrote. Objects it is given are not changed."""

    def __init__(self, client: Client, volumes: Newest, claims: Newest, events: EventRecorder) -> None:
        self._volume_client = client.of("", "v1", "persistentvolumes")
        self._claim_client = client.of("", "v1", "persistentvolumeclaims")
        self._volumes, self._claims, self._events = volumes, claims, events

    async def bind(self, volume: Object, claim: Object) -> None:
        """Make a volume and a claim name each other. What is so already is not written again."""
        volume = await self._point_volume(volume, claim)
        volume = await self.set_volume_phase(volume, "Bound")
        claim = await self._point_claim(claim, volume)
        await self.set_claim_phase(claim, "Bound", volume)

    async def unbind(self, volume: Object) -> None:
        """Take the claim off a volume; what the user reserved stays reserved for that name."""
        changed = copy_of(volume)
        if BOUND_BY_CONTROLLER in annotations_of(volume):
            del changed["spec"]["claimRef"]
            del changed["metadata"]["annotations"][BOUND_BY_CONTROLLER]
        else:
            changed["spec"]["claimRef"].pop("uid", None)
        await self.set_volume_phase(await self._update_volume(changed), "Available")

    async def set_volume_phase(self, volume: Object, phase: str, message: str = "") -> Object:
        """Write the phase of a volume; the volume after that."""
        if phase_of(volume) == phase:
            return volume
        changed = copy_of(volume)
        status = changed.setdefault("status", {})
        status["phase"] = phase
        status.pop("message", None)
        if message:
            status["message"] = message
        return self._volumes.note(await self._volume_client.update_status(changed))

    async def fail_volume(self, volume: Object, reason: str, message: str) -> None:
        """Write that a volume failed, and say so once."""
        if phase_of(volume) != "Failed":
            volume = await self.set_volume_phase(volume, "Failed", message)
            self._events.event(volume, "Warning", reason, message)

    async def set_claim_phase(self, claim: Object, phase: str, volume: Object | None = None) -> Object:
        """Write the phase of a claim, and what it has of its volume; the claim after that."""
        status = dict(claim.get("status") or {})
        if volume is None:
            for name in ("accessModes", "capacity", "currentVolumeAttributesClassName"):
                status.pop(name, None)
        else:
            _describe(status, volume, is_new=phase_of(claim) != phase)
        status["phase"] = phase
        if status == (claim.get("status") or {}):
            return claim
        changed = {**copy_of(claim), "status": status}
        return self._claims.note(await self._claim_client.update_status(changed))

    async def lose_claim(self, claim: Object, reason: str, message: str) -> None:
        """Write that a claim has lost its volume, and say so once."""
        if phase_of(claim) != "Lost":
            claim = await self.set_claim_phase(claim, "Lost")
            self.tell(claim, "Warning", reason, message)

    async def set_class(self, claim: Object, name: str) -> None:
        """Give a claim the default class."""
        changed = copy_of(claim)
        changed["spec"]["storageClassName"] = name
        await self._update_claim(changed)

    async def ask_provisioner(self, claim: Object, provisioner: str) -> Object:
        """Leave a claim to a provisioner."""
        if annotations_of(claim).get(PROVISIONER) == provisioner:
            return claim
        changed = copy_of(claim)
        asked = {LEGACY_PROVISIONER: provisioner, PROVISIONER: provisioner}
        changed["metadata"].setdefault("annotations", {}).update(asked)
        return await self._update_claim(changed)

    def tell(self, obj: Object, type: EventType, reason: str, message: str) -> None:
        """Record an event."""
        self._events.event(obj, type, reason, message)

    async def _point_volume(self, volume: Object, claim: Object) -> Object:
        reference = volume["spec"].get("claimRef") or {}
        if is_reserved_for(volume, claim) and reference.get("uid"):
            return volume
        changed = copy_of(volume)
        if not is_reserved_for(volume, claim):
            changed["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
        changed["spec"]["claimRef"] = reference_to(claim, "PersistentVolumeClaim", "v1")
        return await self._update_volume(changed)

    async def _point_claim(self, claim: Object, volume: Object) -> Object:
        name = volume["metadata"]["name"]
        added: dict[str, str] = {}
        if claim["spec"].get("volumeName") != name:
            added[BOUND_BY_CONTROLLER] = "yes"
        if BIND_COMPLETED not in annotations_of(claim):
            added[BIND_COMPLETED] = "yes"
        if not added:
            return claim
        changed = copy_of(claim)
        changed["spec"]["volumeName"] = name
        changed["metadata"]["annotations"] = added | annotations_of(changed)
        return await self._update_claim(changed)

    async def _update_volume(self, volume: Object) -> Object:
        return self._volumes.note(await self._volume_client.update(volume))

    async def _update_claim(self, claim: Object) -> Object:
        return self._claims.note(await self._claim_client.update(claim))


def _describe(status: Object, volume: Object, is_new: bool) -> None:
    """What a claim's status says of its volume. Later the capacity is the expander's business."""
    spec = volume["spec"]
    status["accessModes"] = list(spec.get("accessModes") or ())
    if is_new:
        capacity = dict(spec.get("capacity") or {})
        before = annotations_of(volume).get(_BEFORE_RESIZE)
        if before is not None:
            capacity["storage"] = _parsed(before) or capacity["storage"]
        status["capacity"] = capacity
        if status.get("phase") == "Pending" and spec.get("volumeAttributesClassName") is not None:
            status["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"]


def _parsed(text: str) -> str:
    try:
        return str(quantity.parse(text))
    except quantity.QuantityError:
        return ""
