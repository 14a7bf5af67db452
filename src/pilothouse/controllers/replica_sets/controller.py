"""Keeps as many pods as an owner wants, and its status up to date.

    claim pods that match ─► too few: create in growing batches ─► status
                             too many: delete the least valuable

What was asked for and is not seen yet is expected, so that nothing is created or deleted twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.replica_sets.kinds import ReplicaKind
from pilothouse.controllers.replica_sets.ranking import pods_to_delete
from pilothouse.controllers.runtime.batches import found_among, results_of, slow_start_batch
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.creation_pace import AGAIN_SECONDS, CreationPace
from pilothouse.controllers.runtime.expectations import UIDExpectations
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, ORPHANS, SELECTOR, Key, key_of
from pilothouse.controllers.runtime.owners import ControllerRefClaim, controller_of, controller_reference, recheck_owner
from pilothouse.controllers.runtime.pacing import Pacer
from pilothouse.controllers.runtime.pod_control import PodControl, is_namespace_terminating, pod_from_template
from pilothouse.controllers.runtime.pods import (
    condition_of,
    is_active,
    is_available,
    is_ready,
    is_terminal,
    seconds_until_available,
)
from pilothouse.controllers.runtime.selecting import Selecting
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant, format_time
from pilothouse.machinery.workers import weighed

_BURST: Final = 500
_POD: Final = 20
"""How many bytes of usual JSON a pod is as much work as."""
_WANTED: Final = ("uid", "generation", "deletionTimestamp", "labels", "annotations", "ownerReferences", "finalizers")
_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicaController:
    """The controller of one kind."""

    def __init__(self, context: ControllerContext, kind: ReplicaKind) -> None:
        self._kind, self._clock = kind, context.clock
        client = context.client(kind.account)
        self._owners = context.informers.of(kind.group, "v1", kind.resource)
        self._owners.add_index(BY_CONTROLLER_UID)
        self._owners.add_reading(SELECTOR, kind.read_selector)
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(BY_CONTROLLER_UID)
        self._pods.add_index(ORPHANS)
        self._owner_client = client.of(kind.group, "v1", kind.resource)
        self._pod_client = client.of("", "v1", "pods")
        self._pace = CreationPace(self._pods, context.clock)
        self._control = PodControl(client, context.recorder(kind.controller, kind.account))
        self._expected: UIDExpectations[Key] = UIDExpectations(context.clock)
        self._controller: Controller[Key] = Controller(
            kind.controller, self._reconcile, workers=5, wait_for=[self._owners, self._pods], clock=context.clock
        )
        self._pacer = Pacer(self._controller.queue, context.clock)
        add = self._controller.queue.add
        self._adopters = Selecting(self._owners, add, kind.required_labels)
        self._owners.add_handler(
            lambda obj: add(key_of(obj)),
            self._owner_changed,
            self._owner_gone,
            name=kind.controller,
        )
        self._pods.add_handler(self._pod_added, self._pod_changed, self._pod_gone, name=kind.controller)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)

    # Following

    def _owner_changed(self, old: Object, new: Object) -> None:
        before, after = old["metadata"], new["metadata"]
        if all(before.get(name) == after.get(name) for name in _WANTED):
            self._look_soon(key_of(new), after["uid"])  # its status, which we have written ourselves
        else:
            self._controller.queue.add(key_of(new))

    def _owner_gone(self, owner: Object) -> None:
        self._expected.forget(key_of(owner))
        self._controller.queue.add(key_of(owner))

    def _pod_added(self, pod: Object) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            self._pod_gone(pod)
            return
        key = self._owner_of(pod)
        if key is not None:
            self._expected.creation_observed(key)
            self._look_at_owner(key, pod)
        elif controller_of(pod) is None:
            self._adopters.wake(pod)

    def _pod_changed(self, old: Object, new: Object) -> None:
        if new["metadata"].get("deletionTimestamp"):
            self._pod_gone(new)
            return
        before, after = self._owner_of(old), self._owner_of(new)
        if before is not None and before != after:
            self._controller.queue.add(before)
        if after is not None:
            self._look_at_owner(after, new)
            self._look_when_available(after, old, new)
        elif controller_of(new) is None:
            self._adopters.wake(new)

    def _look_when_available(self, key: Key, old: Object, new: Object) -> None:
        owner = self._owners.lister.get(*key)
        seconds = 0 if owner is None else owner["spec"].get("minReadySeconds") or 0
        if seconds and is_ready(new) and not is_ready(old):
            self._controller.queue.add_after(key, float(seconds) + 0.01)

    def _pod_gone(self, pod: Object) -> None:
        key = self._owner_of(pod)
        if key is not None:
            self._expected.deletion_of_observed(key, pod["metadata"]["uid"])
            self._look_at_owner(key, pod)

    def _look_at_owner(self, key: Key, pod: Object) -> None:
        reference = controller_of(pod)
        self._look_soon(key, "" if reference is None else reference["uid"])

    def _look_soon(self, key: Key, uid: str) -> None:
        """Something happened to a pod."""
        self._pacer.add(key, self._pods.lister.count(BY_CONTROLLER_UID, uid))

    def _owner_of(self, pod: Object) -> Key | None:
        reference = controller_of(pod)
        if reference is None or reference["kind"] != self._kind.kind:
            return None
        key = (pod["metadata"]["namespace"], reference["name"])
        owner = self._owners.lister.get(*key)
        return key if owner is not None and owner["metadata"]["uid"] == reference["uid"] else None

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        owner = self._owners.lister.get(*key)
        if owner is None:
            self._expected.forget(key)
            return None
        may_manage = self._expected.satisfied(key)
        owned = self._candidates(owner)
        active = await self._claim(owner, await found_among(owned, is_active))
        error: errors.StatusError | None = None
        if may_manage and not owner["metadata"].get("deletionTimestamp"):
            error = await self._manage(key, owner, active)
        now = self._clock.now()
        going = await found_among(owned, _is_going)
        weight = _POD * len(active)
        status = await weighed(weight, self._status, owner, active, len(going), error, now)
        owner = await self._write_status(owner, status)
        if error is not None:
            raise error
        return await weighed(weight, seconds_until_available, active, owner["spec"].get("minReadySeconds") or 0, now)

    def _candidates(self, owner: Object) -> list[Object]:
        """Pods that the owner controls, and orphans in its namespace, which it may adopt."""
        owned = self._pods.lister.by_index(BY_CONTROLLER_UID, owner["metadata"]["uid"])
        selector = self._owners.lister.selector_of(owner)
        if selector.empty:
            return owned
        orphans = self._pods.lister.by_index(ORPHANS, owner["metadata"]["namespace"])
        return [*owned, *(pod for pod in orphans if selector.matches(pod["metadata"].get("labels") or {}))]

    async def _claim(self, owner: Object, pods: Sequence[Object]) -> list[Object]:
        kind = self._kind

        claim = ControllerRefClaim(
            self._pod_client,
            owner,
            kind.kind,
            kind.api_version,
            self._owners.lister.selector_of(owner),
            recheck_owner(self._owner_client, owner),
        )
        return await claim.claim_all(pods)

    async def _manage(self, key: Key, owner: Object, pods: Sequence[Object]) -> errors.StatusError | None:
        wanted = owner["spec"].get("replicas", 1)
        if len(pods) < wanted:
            return await self._create_allowed(key, owner, wanted - len(pods))
        if len(pods) > wanted:
            return await self._delete(key, owner, pods, min(_BURST, len(pods) - wanted))
        return None

    async def _create_allowed(self, key: Key, owner: Object, missing: int) -> errors.StatusError | None:
        allowed = self._pace.allow(key[0], min(_BURST, missing))
        if allowed < min(_BURST, missing):
            self._controller.queue.add_after(key, AGAIN_SECONDS)
        return await self._create(key, owner, allowed) if allowed else None

    async def _create(self, key: Key, owner: Object, count: int) -> errors.StatusError | None:
        self._expected.expect_creations(key, count)
        reference = controller_reference(owner, self._kind.kind, self._kind.api_version)

        async def create(number: int) -> None:
            try:
                await self._control.create(pod_from_template(owner["spec"]["template"], owner, reference), owner)
            except errors.StatusError as error:
                if not is_namespace_terminating(error):
                    raise

        created, error = await slow_start_batch(count, create)
        for _ in range(count - created):
            self._expected.creation_observed(key)
        if error is not None and not isinstance(error, errors.StatusError):
            raise error
        return error

    async def _delete(self, key: Key, owner: Object, pods: Sequence[Object], count: int) -> errors.StatusError | None:
        related = self._related(owner)
        weight = _POD * (len(pods) + len(related))
        chosen = await weighed(weight, pods_to_delete, pods, related, count, self._clock.now())
        self._expected.expect_deletions_of(key, (pod["metadata"]["uid"] for pod in chosen))

        async def delete(pod: Object) -> errors.StatusError | None:
            metadata = pod["metadata"]
            try:
                await self._control.delete(metadata["namespace"], metadata["name"], owner, metadata["uid"])
            except errors.StatusError as error:
                self._expected.deletion_of_observed(key, metadata["uid"])
                return None if isinstance(error, errors.NotFound) else error
            return None

        failures = [error for error in await results_of(chosen, delete) if error is not None]
        return failures[0] if failures else None

    def _related(self, owner: Object) -> list[Object]:
        """The pods of all owners that the same workload controls."""
        reference = controller_of(owner)
        siblings = [owner]
        if reference is not None:
            siblings = self._owners.lister.by_index(BY_CONTROLLER_UID, reference["uid"])
        return [
            pod
            for sibling in siblings
            for pod in self._pods.lister.by_index(BY_CONTROLLER_UID, sibling["metadata"]["uid"])
        ]

    # Status

    def _status(
        self, owner: Object, pods: Sequence[Object], going: int, error: errors.StatusError | None, now: Instant
    ) -> Object:
        wanted = (owner["spec"]["template"].get("metadata") or {}).get("labels") or {}
        seconds = owner["spec"].get("minReadySeconds") or 0
        ready = [pod for pod in pods if is_ready(pod)]
        counts = {
            "replicas": len(pods),
            "fullyLabeledReplicas": sum(1 for pod in pods if _has_labels(pod, wanted)),
            "readyReplicas": len(ready),
            "availableReplicas": sum(1 for pod in ready if is_available(pod, seconds, now)) if seconds else len(ready),
        }
        status = {name: value for name, value in (owner.get("status") or {}).items() if name not in _COUNTS}
        status |= {name: count for name, count in counts.items() if count or name == "replicas"}
        if self._kind.counts_terminating:
            status["terminatingReplicas"] = going
        status["observedGeneration"] = owner["metadata"].get("generation") or 0
        self._set_failure(status, owner, len(pods), error, now)
        return status

    def _set_failure(
        self, status: Object, owner: Object, count: int, error: errors.StatusError | None, now: Instant
    ) -> None:
        known = condition_of(owner, "ReplicaFailure")
        others = [each for each in status.get("conditions") or () if each["type"] != "ReplicaFailure"]
        if error is None and known is not None:
            status["conditions"] = others
            if not others:
                del status["conditions"]
        elif error is not None and known is None:
            reason = "FailedCreate" if count < owner["spec"].get("replicas", 1) else "FailedDelete"
            failure: dict[str, Any] = {"type": "ReplicaFailure", "status": "True", "reason": reason}
            failure |= {"message": error.message, "lastTransitionTime": format_time(now)}
            status["conditions"] = [*others, failure]

    async def _write_status(self, owner: Object, status: Object) -> Object:
        if (owner.get("status") or {}) == status:
            return owner
        changed = {**owner, "status": status}
        try:
            return await self._owner_client.update_status(changed)
        except errors.NotFound:
            return owner


def _is_going(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) and not is_terminal(pod)


def _has_labels(pod: Object, wanted: dict[str, str]) -> bool:
    own = pod["metadata"].get("labels") or {}
    return own.items() >= wanted.items()
