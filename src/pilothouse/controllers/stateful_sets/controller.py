"""Brings the pods of stateful sets up in their order, down in the reverse order, and from revision to revision.

    for each ordinal, up:      ended ─► delete; missing ─► create; not ready ─► wait; not as it should be ─► mend
    beyond the last, down:     not ready ─► wait; delete
    for the update, down:      old revision ─► delete, as many as may be missing

Each round goes as far as it may and writes the status; with parallel management nothing waits for another pod.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import slow_start_batch
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.creation_pace import AGAIN_SECONDS, CreationPace
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, SELECTOR, Key, key_of, read_selector, working_copy
from pilothouse.controllers.runtime.own_writes import OwnWrites
from pilothouse.controllers.runtime.owners import ControllerRefClaim, controller_of, owners_to_wake, recheck_owner
from pilothouse.controllers.runtime.pods import is_terminal, phase_of, seconds_until_available
from pilothouse.controllers.runtime.revision_history import RevisionHistory, RevisionStyle, template_of
from pilothouse.controllers.stateful_sets import rollout
from pilothouse.controllers.stateful_sets.identity import (
    first_ordinal,
    has_identity,
    has_storage,
    is_member,
    is_wanted,
    make_pod,
    ordinal_of,
    replicas_of,
    revision_of,
)
from pilothouse.controllers.stateful_sets.pods import ClaimError, StatefulPods
from pilothouse.machinery import errors, labels
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant

_NAME: Final = "statefulset-controller"
_STYLE: Final = RevisionStyle("StatefulSet", "controller.kubernetes.io/hash")
_STALE_CLAIM_SECONDS: Final = 1.0
_NEW_A_ROUND: Final = 500
_FAILURES: Final = (errors.StatusError, ClaimError)


@dataclass
class _Round:
    """One look at a set."""

    stateful_set: Object
    replicas: list[Object]
    """The pods of wanted ordinals; the first of those that are missing, as they are to be created."""
    left_out: int
    """How many more are missing: a set may want two thousand million, and nobody makes them all at once."""
    condemned: list[Object]
    """The pods beyond them, the highest ordinal first."""
    now: Instant
    again: float | None = None
    updating: int = 0
    """How many pods of the current revision were deleted to come back from the new one."""

    @property
    def first_unavailable(self) -> Object | None:
        """The unavailable pod of the lowest ordinal: it may be deleted though it is not healthy."""
        pods = [*self.replicas, *reversed(self.condemned)]
        return next((pod for pod in pods if rollout.is_unavailable(self.stateful_set, pod, self.now)), None)


class StatefulSetController:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        client = context.client(_NAME)
        self._clock = context.clock
        self._sets = context.informers.of("apps", "v1", "statefulsets")
        self._sets.add_reading(SELECTOR, read_selector)
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(BY_CONTROLLER_UID)
        self._pace = CreationPace(self._pods, context.clock)
        claims = context.informers.of("", "v1", "persistentvolumeclaims")
        revisions = context.informers.of("apps", "v1", "controllerrevisions")
        self._set_client, self._pod_client = client.of("apps", "v1", "statefulsets"), client.of("", "v1", "pods")
        self._writes: OwnWrites[Key] = OwnWrites()
        self._history = RevisionHistory(revisions, client.of("apps", "v1", "controllerrevisions"), _STYLE)
        self._control = StatefulPods(client, self._pods, claims, context.recorder(_NAME, _NAME), self._writes)
        self._controller: Controller[Key] = Controller(
            _NAME,
            self._reconcile,
            workers=5,
            wait_for=[self._sets, self._pods, claims, revisions],
            clock=context.clock,
        )
        add = self._controller.queue.add
        self._sets.add_handler(
            lambda obj: add(key_of(obj)), lambda old, new: add(key_of(new)), lambda obj: add(key_of(obj)), name=_NAME
        )
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_seen, name=_NAME)
        claims.add_handler(self._claim_seen, lambda old, new: self._claim_seen(new), name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)

    # Following

    def _pod_seen(self, pod: Object) -> None:
        for key in owners_to_wake(pod, "StatefulSet", self._sets.lister):
            self._controller.queue.add(key)

    def _pod_changed(self, old: Object, new: Object) -> None:
        if controller_of(old) != controller_of(new):
            self._pod_seen(old)
        self._pod_seen(new)

    def _claim_seen(self, claim: Object) -> None:
        """A round that waited for its own claims goes on."""
        for each in self._sets.lister.list(claim["metadata"]["namespace"]):
            if key_of(each) in self._writes:
                self._controller.queue.add(key_of(each))

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        known = self._sets.lister.get(*key)
        if known is None:
            self._writes.forget(key)
            return None
        if self._writes.are_unseen(key):
            return None
        stateful_set = working_copy(known)
        selector = self._sets.lister.selector_of(known)
        can_adopt = recheck_owner(self._set_client, stateful_set)
        revisions = await self._history.list(stateful_set, selector, can_adopt)
        pods = await self._claim(stateful_set, selector)
        collisions = (stateful_set.get("status") or {}).get("collisionCount") or 0
        update, collisions = await self._history.ensure(stateful_set, revisions, collisions)
        named = (stateful_set.get("status") or {}).get("currentRevision")
        current = next((each for each in revisions if each["metadata"]["name"] == named), update)
        round = self._begin(stateful_set, pods, current, update)
        failure = await self._act(round, update["metadata"]["name"])
        await self._write_status(round, current["metadata"]["name"], update["metadata"]["name"], collisions)
        await self._drop_revisions(
            stateful_set, revisions, {current["metadata"]["name"], update["metadata"]["name"], *map(revision_of, pods)}
        )
        if failure is not None:
            raise failure
        return self._next_look(round)

    async def _claim(self, stateful_set: Object, selector: labels.Selector) -> list[Object]:
        metadata = stateful_set["metadata"]
        candidates = self._pods.lister.by_index(BY_CONTROLLER_UID, metadata["uid"])
        if not selector.empty:
            candidates += [
                pod
                for pod in self._pods.lister.list(metadata["namespace"], selector)
                if controller_of(pod) is None and is_member(stateful_set, pod)
            ]
        recheck = recheck_owner(self._set_client, stateful_set)
        claim = ControllerRefClaim(self._pod_client, stateful_set, "StatefulSet", "apps/v1", selector, recheck)
        return await claim.claim_all(candidates)

    def _begin(self, stateful_set: Object, pods: Sequence[Object], current: Object, update: Object) -> _Round:
        first = first_ordinal(stateful_set)
        there = {ordinal_of(pod): pod for pod in pods if is_wanted(stateful_set, pod)}

        def missing(ordinal: int) -> Object:
            revision = current if rollout.is_from_current(stateful_set, ordinal) else update
            return make_pod(stateful_set, template_of(revision), revision["metadata"]["name"], ordinal)

        wanted = replicas_of(stateful_set)
        absent = (ordinal for ordinal in range(first, first + wanted) if ordinal not in there)
        count = min(_NEW_A_ROUND, wanted - len(there))
        allowed = self._pace.allow(stateful_set["metadata"]["namespace"], count) if count > 0 else 0
        new = {ordinal: missing(ordinal) for ordinal in islice(absent, allowed)}
        replicas = there | new
        condemned = [pod for pod in pods if not is_wanted(stateful_set, pod) and ordinal_of(pod) >= 0]
        return _Round(
            stateful_set,
            [replicas[ordinal] for ordinal in sorted(replicas)],
            wanted - len(replicas),
            sorted(condemned, key=ordinal_of, reverse=True),
            self._clock.now(),
            AGAIN_SECONDS if allowed < count else None,
        )

    async def _act(self, round: _Round, update: str) -> Exception | None:
        """Go as far as it may be gone; what stopped it, if it was a failure."""
        if round.stateful_set["metadata"].get("deletionTimestamp"):
            return None
        try:
            if await self._for_all(round, round.replicas, self._bring_up):
                return None
            if await self._for_all(round, round.condemned, self._keep_claims):
                return None
            if await self._for_all(round, round.condemned, self._bring_down):
                return None
            for pod in rollout.pods_to_update(round.stateful_set, round.replicas, round.left_out, update, round.now):
                await self._control.delete(round.stateful_set, pod)
                round.updating += 1
        except _FAILURES as error:
            return error
        return None

    async def _for_all(
        self, round: _Round, pods: Sequence[Object], step: Callable[[_Round, Object], Awaitable[bool]]
    ) -> bool:
        """Take a step for each pod, in order or all at once; whether the round is to stop here."""
        if rollout.is_parallel(round.stateful_set):
            _, error = await slow_start_batch(len(pods), lambda number: step(round, pods[number]))
            if error is not None:
                raise error
            return False
        for pod in pods:
            if await step(round, pod):
                return True
        return False

    async def _bring_up(self, round: _Round, pod: Object) -> bool:
        """One step for a wanted pod; whether those after it have to wait."""
        stateful_set, now = round.stateful_set, round.now
        if not rollout.is_created(pod):
            if self._control.are_claims_stale(stateful_set, pod):
                round.again = _STALE_CLAIM_SECONDS
                return True
            await self._control.create(stateful_set, pod)
            return True
        if is_terminal(pod):
            if not rollout.is_terminating(pod):
                await self._control.delete(stateful_set, pod)
            return True
        if phase_of(pod) == "Pending":
            await self._control.create_claims(stateful_set, pod)
            await self._control.keep_retention(stateful_set, pod)
        waits = rollout.is_unavailable(stateful_set, pod, now) or not rollout.is_running_and_ready(pod)
        if waits and not rollout.is_parallel(stateful_set):
            return True
        kept = self._control.is_retention_kept(stateful_set, pod)
        if not (has_identity(stateful_set, pod) and has_storage(stateful_set, pod) and kept):
            await self._control.mend(stateful_set, pod)
        return False

    async def _keep_claims(self, round: _Round, pod: Object) -> bool:
        if not self._control.is_retention_kept(round.stateful_set, pod):
            await self._control.keep_retention(round.stateful_set, pod)
        return False

    async def _bring_down(self, round: _Round, pod: Object) -> bool:
        """One step for a pod beyond the last ordinal; whether those below it have to wait."""
        stateful_set = round.stateful_set
        if rollout.is_terminating(pod):
            return True
        healthy = rollout.is_running_and_ready(pod) and not rollout.is_unavailable(stateful_set, pod, round.now)
        if not healthy and not rollout.is_parallel(stateful_set) and pod is not round.first_unavailable:
            return True
        await self._control.delete(stateful_set, pod)
        return True

    async def _drop_revisions(self, stateful_set: Object, revisions: Sequence[Object], live: Set[str]) -> None:
        """Drop the oldest revisions that nobody needs and that the history has no room for."""
        dead = [each for each in revisions if each["metadata"]["name"] not in live]
        limit = stateful_set["spec"].get("revisionHistoryLimit")
        if limit is not None and limit >= 0:
            await self._history.drop_oldest(dead, len(dead) - limit)

    # Status

    async def _write_status(self, round: _Round, current: str, update: str, collisions: int) -> None:
        stateful_set = round.stateful_set
        pods = [*round.replicas, *round.condemned]
        counts = rollout.counts_of(stateful_set, pods, current, update, round.now)
        counts["currentReplicas"] = max(0, counts["currentReplicas"] - round.updating)
        status = rollout.status_of(stateful_set, counts, current, update, collisions)
        if status == stateful_set.get("status"):
            return
        try:
            written = await self._set_client.update_status({**stateful_set, "status": status})
        except errors.NotFound:
            return
        self._writes.wrote(key_of(stateful_set), self._sets, written)

    def _next_look(self, round: _Round) -> float | None:
        """When a ready pod becomes available."""
        seconds = rollout.min_ready_seconds(round.stateful_set)
        waits = (round.again, seconds_until_available(round.replicas, seconds, round.now))
        return min((wait for wait in waits if wait is not None), default=None)
