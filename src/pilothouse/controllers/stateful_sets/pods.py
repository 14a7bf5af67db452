"""Creates, mends and deletes the pods of stateful sets, with the claims that belong to them, and tells of it."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.runtime.client import Client
from pilothouse.controllers.runtime.events import EventRecorder
from pilothouse.controllers.runtime.indexer import Key, copy_of, key_of, working_copy
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.own_writes import OwnWrites
from pilothouse.controllers.stateful_sets import retention
from pilothouse.controllers.stateful_sets.identity import (
    claims_of,
    give_identity,
    give_storage,
    has_identity,
    has_storage,
    ordinal_of,
)
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object

_VERBS: Final = {"create": "Create", "update": "Update", "delete": "Delete"}


class ClaimError(Exception):
    """A pod cannot be had because of its claims."""


class StatefulPods:
    """Acts on one pod at a time. What it writes is entered into the controller's own writes."""

    def __init__(
        self, client: Client, pods: Informer, claims: Informer, events: EventRecorder, writes: OwnWrites[Key]
    ) -> None:
        self._pods, self._claims, self._events, self._writes = pods, claims, events, writes
        self._pod_client = client.of("", "v1", "pods")
        self._claim_client = client.of("", "v1", "persistentvolumeclaims")

    async def create(self, stateful_set: Object, pod: Object) -> None:
        """Create a pod, after its claims."""
        try:
            await self.create_claims(stateful_set, pod)
        except ClaimError as error:
            self._tell("create", stateful_set, pod, str(error))
            raise
        try:
            created = await self._pod_client.create(pod)
        except errors.AlreadyExists:
            raise
        except errors.StatusError as error:
            self._tell("create", stateful_set, pod, error.message)
            raise
        self._writes.wrote(key_of(stateful_set), self._pods, created)
        await self.keep_retention(stateful_set, created)
        self._tell("create", stateful_set, created)

    async def mend(self, stateful_set: Object, pod: Object) -> None:
        """Give a pod back what it should have: its labels, its volumes, and the owners of its claims."""
        changed = working_copy(pod)
        if not has_identity(stateful_set, pod):
            give_identity(stateful_set, changed)
        if not has_storage(stateful_set, pod):
            give_storage(stateful_set, changed)
            await self.create_claims(stateful_set, changed)
        await self.keep_retention(stateful_set, changed)
        if changed == pod:
            return
        try:
            written = await self._pod_client.update(changed)
        except errors.StatusError as error:
            self._tell("update", stateful_set, pod, error.message)
            raise
        self._writes.wrote(key_of(stateful_set), self._pods, written)
        self._tell("update", stateful_set, pod)

    async def delete(self, stateful_set: Object, pod: Object) -> None:
        """Delete a pod; one that has gone is as good."""
        metadata = pod["metadata"]
        try:
            answer = await self._pod_client.delete(metadata["namespace"], metadata["name"], uid=metadata["uid"])
        except errors.NotFound:
            pass
        except errors.StatusError as error:
            self._tell("delete", stateful_set, pod, error.message)
            raise
        else:
            self._writes.wrote(key_of(stateful_set), self._pods, answer)
        self._tell("delete", stateful_set, pod)

    # Claims

    async def create_claims(self, stateful_set: Object, pod: Object) -> None:
        """Create the claims that a pod has not. Raises ClaimError."""
        problems = []
        for claim in claims_of(stateful_set, ordinal_of(pod)).values():
            name = claim["metadata"]["name"]
            known = self._claims.lister.get(*key_of(claim))
            if known is not None:
                if known["metadata"].get("deletionTimestamp"):
                    problems.append(f"pvc {name} is being deleted")
                continue
            try:
                created = await self._claim_client.create(claim)
            except errors.StatusError as error:
                problems.append(f"failed to create PVC {name}: {error.message}")
                if not isinstance(error, errors.AlreadyExists):
                    self._tell_claim(stateful_set, pod, name, error.message)
            else:
                self._writes.wrote(key_of(stateful_set), self._claims, created)
                self._tell_claim(stateful_set, pod, name)
        if problems:
            raise ClaimError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    def are_claims_stale(self, stateful_set: Object, pod: Object) -> bool:
        """Whether claims are about to go with an earlier pod of this name: the new one has to wait."""
        if retention.policy_of(stateful_set)[1] == "Retain":
            return False
        return any(retention.is_owned_by_earlier_pod(claim, pod) for claim in self._known_claims(stateful_set, pod))

    def is_retention_kept(self, stateful_set: Object, pod: Object) -> bool:
        """Whether the claims of a pod have the owners that the policy wants."""
        claims = self._known_claims(stateful_set, pod)
        return all(retention.is_owned_rightly(claim, stateful_set, pod) for claim in claims)

    def _known_claims(self, stateful_set: Object, pod: Object) -> list[Object]:
        keys = map(key_of, claims_of(stateful_set, ordinal_of(pod)).values())
        return [claim for key in keys if (claim := self._claims.lister.get(*key)) is not None]

    async def keep_retention(self, stateful_set: Object, pod: Object) -> None:
        """Give the claims of a pod the owners that the policy wants."""
        for claim in self._known_claims(stateful_set, pod):
            if retention.has_other_controller(claim, stateful_set, pod):
                text = f"PersistentVolumeClaim {claim['metadata']['name']} has a conflicting OwnerReference that acts "
                text += "as a manging controller, the retention policy is ignored for this claim"
                self._events.event(stateful_set, "Warning", "ConflictingController", text)
            if not retention.is_owned_rightly(claim, stateful_set, pod):
                changed = copy_of(claim)
                changed["metadata"]["ownerReferences"] = retention.wanted_owners(claim, stateful_set, pod)
                written = await self._claim_client.update(changed)
                self._writes.wrote(key_of(stateful_set), self._claims, written)

    # Events

    def _tell(self, verb: str, stateful_set: Object, pod: Object, error: str = "") -> None:
        done, names = _VERBS[verb], f"Pod {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']}"
        if error:
            text = f"{done} {names} failed error: {error}"
            self._events.event(stateful_set, "Warning", f"Failed{done}", text)
        else:
            self._events.event(stateful_set, "Normal", f"Successful{done}", f"{done} {names} successful")

    def _tell_claim(self, stateful_set: Object, pod: Object, claim: str, error: str = "") -> None:
        names = f"Pod {pod['metadata']['name']} in StatefulSet {stateful_set['metadata']['name']}"
        if error:
            text = f"Create Claim {claim} for {names} failed error: {error}"
            self._events.event(stateful_set, "Warning", "FailedCreate", text)
        else:
            self._events.event(stateful_set, "Normal", "SuccessfulCreate", f"Create Claim {claim} {names} success")
