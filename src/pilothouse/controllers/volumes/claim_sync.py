"""What is to happen to a claim next.

no volume yet      reserved or free volume: bind ─ none: default class, provisioner, or wait for a pod or a volume
volume by name     free or reserved for this claim: bind if it will do ─ somebody else's: say so and wait
was bound          all well: write what is missing ─ volume gone or another's: lost
"""

from __future__ import annotations

from pilothouse.controllers.runtime.indexer import Lister
from pilothouse.controllers.runtime.pods import is_terminal
from pilothouse.controllers.volumes.facts import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    CSI_NAMES,
    PODS_BY_CLAIM,
    SELECTED_NODE,
    annotations_of,
    class_of,
    default_class,
    is_reserved_for,
    names_class,
)
from pilothouse.controllers.volumes.matching import find_volume, mismatch
from pilothouse.controllers.volumes.newest import Newest
from pilothouse.controllers.volumes.writes import BindingWrites
from pilothouse.machinery.objects import Object


class MisboundClaim(Exception):
    """The controller bound a claim to a volume that is another's."""


class ClaimSync:
    """Brings claims forward."""

    def __init__(self, volumes: Newest, classes: Lister, pods: Lister, writes: BindingWrites) -> None:
        self._volumes, self._classes, self._pods, self._writes = volumes, classes, pods, writes

    async def sync(self, claim: Object) -> None:
        """Do what is to be done next."""
        if BIND_COMPLETED in annotations_of(claim):
            await self._sync_bound(claim)
        elif claim["spec"].get("volumeName"):
            await self._sync_named(claim)
        else:
            await self._sync_free(claim)

    async def _sync_free(self, claim: Object) -> None:
        waits = self._waits_for_pod(claim)
        volume = find_volume(claim, self._volumes.list(), waits)
        if volume is not None:
            await self._writes.bind(volume, claim)
            return
        preferred = None if names_class(claim) else default_class(self._classes.list())
        if preferred is not None:
            await self._writes.set_class(claim, preferred["metadata"]["name"])
            return
        if waits and SELECTED_NODE not in annotations_of(claim):
            self._tell_of_waiting(claim)
        elif class_of(claim):
            await self._provision(claim)
            return
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._writes.tell(claim, "Normal", "FailedBinding", text)
        await self._writes.set_claim_phase(claim, "Pending")

    def _waits_for_pod(self, claim: Object) -> bool:
        storage_class = self._classes.get("", class_of(claim)) if class_of(claim) else None
        return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"

    def _tell_of_waiting(self, claim: Object) -> None:
        metadata = claim["metadata"]
        pods = self._pods.by_index(PODS_BY_CLAIM, f"{metadata['namespace']}/{metadata['name']}")
        names = [pod["metadata"]["name"] for pod in pods if not is_terminal(pod) and not pod["spec"].get("nodeName")]
        if not names:
            text = "waiting for first consumer to be created before binding"
            self._writes.tell(claim, "Normal", "WaitForFirstConsumer", text)
            return
        who = f"pod {names[0]}" if len(names) == 1 else f"pods {','.join(names)}"
        self._writes.tell(claim, "Normal", "WaitForPodScheduled", f"waiting for {who} to be scheduled")

    async def _provision(self, claim: Object) -> None:
        storage_class = self._classes.get("", class_of(claim))
        if storage_class is None:
            text = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._writes.tell(claim, "Warning", "ProvisioningFailed", text)
            return
        named: str = storage_class["provisioner"]
        provisioner = CSI_NAMES.get(named, named)
        if provisioner.startswith("kubernetes.io/"):
            text = f"no volume plugin matched name: {provisioner}"
            self._writes.tell(claim, "Warning", "ProvisioningFailed", text)
            return
        claim = await self._writes.ask_provisioner(claim, provisioner)
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._writes.tell(claim, "Normal", "ExternalProvisioning", text)

    async def _sync_named(self, claim: Object) -> None:
        """The user, or a binding that did not come to its end, named the volume."""
        name = claim["spec"]["volumeName"]
        volume = self._volumes.get("", name)
        if volume is None:
            await self._writes.set_claim_phase(claim, "Pending")
        elif volume["spec"].get("claimRef") is None:
            why = mismatch(volume, claim)
            if not why:
                await self._writes.bind(volume, claim)
                return
            self._writes.tell(claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {why}')
            await self._writes.set_claim_phase(claim, "Pending")
        elif is_reserved_for(volume, claim):
            await self._writes.bind(volume, claim)
        else:
            text = f'volume "{name}" already bound to a different claim.'
            self._writes.tell(claim, "Warning", "FailedBinding", text)
            if BOUND_BY_CONTROLLER in annotations_of(claim):
                raise MisboundClaim(text)
            await self._writes.set_claim_phase(claim, "Pending")

    async def _sync_bound(self, claim: Object) -> None:
        name = claim["spec"].get("volumeName")
        if not name:
            text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            await self._writes.lose_claim(claim, "ClaimLost", text)
            return
        volume = self._volumes.get("", name)
        if volume is None:
            text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            await self._writes.lose_claim(claim, "ClaimLost", text)
            return
        reference = volume["spec"].get("claimRef")
        if reference is None or reference.get("uid") == claim["metadata"]["uid"]:
            await self._writes.bind(volume, claim)
            return
        text = "Two claims are bound to the same volume, this one is bound incorrectly"
        await self._writes.lose_claim(claim, "ClaimMisbound", text)
