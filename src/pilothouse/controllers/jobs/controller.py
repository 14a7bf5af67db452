"""Runs the pods of jobs and counts how they end.

claim pods ─► tally ─► at its end?  yes: delete what runs
                                    no:  create or delete pods to have as many as wanted, after failures later
           ─► count ended pods (see ``tracking``) ─► status
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pilothouse.controllers.jobs import pods as job_pods
from pilothouse.controllers.jobs.backoff import FailureRecord, wait_of_index
from pilothouse.controllers.jobs.conditions import Condition, condition, ensure, is_finished, success
from pilothouse.controllers.jobs.memory import JobMemory
from pilothouse.controllers.jobs.orphans import OrphanRelease
from pilothouse.controllers.jobs.specs import (
    FINALIZER,
    is_indexed,
    is_managed_elsewhere,
    is_suspended,
    limits_each_index,
    waits_for_failed,
)
from pilothouse.controllers.jobs.tally import Tally
from pilothouse.controllers.jobs.tracking import Count, release_all, release_pod
from pilothouse.controllers.jobs.verdict import is_complete, seconds_to_deadline, verdict
from pilothouse.controllers.jobs.wakers import JobWakers
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.batches import results_of, slow_start_batch
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.creation_pace import AGAIN_SECONDS, CreationPace
from pilothouse.controllers.runtime.indexer import BY_CONTROLLER_UID, SELECTOR, Key, key_of, read_selector, working_copy
from pilothouse.controllers.runtime.owners import ControllerRefClaim, controller_of, is_controlled_by, recheck_owner
from pilothouse.controllers.runtime.pod_control import PodControl, is_namespace_terminating
from pilothouse.controllers.runtime.pods import is_ready
from pilothouse.controllers.runtime.work_queue import WorkQueue
from pilothouse.machinery import errors, labels
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import format_time
from pilothouse.machinery.workers import weighed

_NAME: Final = "job-controller"
_BURST: Final = 500


@dataclass
class _Round:
    """One look at a job, a copy that is ours to change."""

    key: Key
    job: Object
    tally: Tally
    may_manage: bool
    failures: FailureRecord
    active: int
    ready: int
    terminating: int
    ending: Condition | None = None
    error: errors.StatusError | None = None
    again: float | None = None
    """Seconds after which the job is to be looked at again."""

    def look_again(self, seconds: float) -> None:
        self.again = seconds if self.again is None else min(self.again, seconds)


class JobController:
    """See the module's docstring."""

    def __init__(self, context: ControllerContext) -> None:
        client = context.client(_NAME)
        self._clock = context.clock
        self._jobs = context.informers.of("batch", "v1", "jobs")
        self._jobs.add_reading(SELECTOR, read_selector)
        self._pods = context.informers.of("", "v1", "pods")
        self._pods.add_index(BY_CONTROLLER_UID)
        self._job_client, self._pod_client = client.of("batch", "v1", "jobs"), client.of("", "v1", "pods")
        self._events = context.recorder(_NAME, _NAME)
        self._pace = CreationPace(self._pods, context.clock)
        self._control = PodControl(client, self._events)
        self._memory = JobMemory(context.clock)
        self._orphans = OrphanRelease(self._jobs, self._pods, self._pod_client, context.clock)
        self._queue: WorkQueue[Key] = WorkQueue(Backoff(0.1, 60.0), context.clock, "job")
        self._controller: Controller[Key] = Controller(
            _NAME,
            self._reconcile,
            workers=5,
            queue=self._queue,
            wait_for=[self._jobs, self._pods],
            clock=context.clock,
        )
        JobWakers(_NAME, self._jobs, self._pods, self._queue, self._memory, self._orphans)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to reconcile."""
        self._controller.start(supervisor)
        self._orphans.start(supervisor)

    # Reconciling

    async def _reconcile(self, key: Key) -> float | None:
        known = self._jobs.lister.get(*key)
        if known is None:
            self._memory.forget(key)
            return None
        if is_managed_elsewhere(known) or is_finished(known) or self._memory.writes.are_unseen(key):
            return None
        round = await self._begin(key, working_copy(known))
        round.ending = await weighed(round.tally.weight, verdict, round.tally, self._clock.now())
        if round.ending is not None:
            await self._stop_all(round)
            suspension_changed = False
        else:
            suspension_changed = await self._go_on(round)
        left = seconds_to_deadline(round.job, self._clock.now())
        if left is not None and round.ending is None:
            round.look_again(max(left, 0.001))
        await self._write(round, suspension_changed)
        if round.error is not None:
            raise round.error
        return round.again

    async def _begin(self, key: Key, job: Object) -> _Round:
        may_manage = self._memory.expected.satisfied(key)
        status = job.setdefault("status", {})
        status.setdefault("uncountedTerminatedPods", {})
        pods = await self._claim(job)
        # The tally looks at the job as it was read; the round changes its own copy.
        tally = Tally(working_copy(job), pods, self._memory.releases.uids(key))
        await weighed(tally.weight, tally.settle)
        if not status.get("startTime") and not is_suspended(job):
            status["startTime"] = format_time(self._clock.now())
        failures = await weighed(
            tally.weight,
            self._memory.failures.get(key, FailureRecord()).with_pods,
            tally.new_succeeded,
            tally.new_failed,
        )
        counts = (len(tally.active), tally.ready, len(tally.terminating))
        return _Round(key, job, tally, may_manage, failures, *counts)

    async def _claim(self, job: Object) -> list[Object]:
        selector = labels.from_object(job["spec"].get("selector"))
        namespace = job["metadata"]["namespace"]
        candidates = self._pods.lister.by_index(BY_CONTROLLER_UID, job["metadata"]["uid"])
        if not selector.empty:
            candidates += [pod for pod in self._pods.lister.list(namespace, selector) if controller_of(pod) is None]
        claim = ControllerRefClaim(
            self._pod_client,
            job,
            "Job",
            "batch/v1",
            selector,
            recheck_owner(self._job_client, job),
            (FINALIZER,),
        )
        claimed = await claim.claim_all(candidates)
        return [pod if is_controlled_by(pod, job) else _as_adopted(pod) for pod in claimed]

    async def _stop_all(self, round: _Round) -> None:
        """Delete what runs; the job has not ended before all of it is known to go."""
        active = round.tally.active
        deleted, round.error = await self._delete(round, active, release=False)
        if len(deleted) != len(active) or not round.may_manage:
            round.ending = None
        self._note_deleted(round, deleted)

    async def _go_on(self, round: _Round) -> bool:
        """Create or delete pods; whether it was found that the job was suspended or resumed."""
        managed = round.may_manage and not round.job["metadata"].get("deletionTimestamp")
        if managed:
            await self._manage(round)
        if is_complete(round.job, round.tally.succeeded, round.active):
            text = "Reached expected number of succeeded pods"
            round.ending = success("CompletionsReached", text, self._clock.now())
            return False
        return managed and self._note_suspension(round.job)

    def _note_suspension(self, job: Object) -> bool:
        status, now = job["status"], self._clock.now()
        if is_suspended(job):
            if not ensure(status, condition("Suspended", "True", "JobSuspended", "Job suspended", now)):
                return False
            status.pop("startTime", None)
            self._events.event(job, "Normal", "Suspended", "Job suspended")
            return True
        if not ensure(status, condition("Suspended", "False", "JobResumed", "Job resumed", now)):
            return False
        status["startTime"] = format_time(now)
        self._events.event(job, "Normal", "Resumed", "Job resumed")
        return True

    # Pods

    async def _manage(self, round: _Round) -> None:
        job, tally = round.job, round.tally
        wanted = 0 if is_suspended(job) else job_pods.wanted_active(job, tally.succeeded, round.active)
        at_least = max(0, round.active - wanted)
        surplus = (await weighed(tally.weight, job_pods.pods_to_remove, job, tally.active, at_least))[:_BURST]
        if surplus:
            self._memory.expected.expect_deletions_of(round.key, [pod["metadata"]["uid"] for pod in surplus])
            deleted, round.error = await self._delete(round, surplus, release=True)
            self._note_deleted(round, deleted)
            return
        missing = wanted - round.active - (round.terminating if waits_for_failed(job) else 0)
        if missing > 0:
            allowed = self._pace.allow(round.key[0], min(missing, _BURST))
            if allowed < min(missing, _BURST):
                round.look_again(AGAIN_SECONDS)
            await self._create(round, allowed)

    async def _create(self, round: _Round, count: int) -> None:
        indexes = await self._indexes_to_create(round, count)
        if not indexes:
            return
        job, key = round.job, round.key
        self._memory.expected.expect_creations(key, len(indexes))

        async def create(number: int) -> None:
            index = indexes[number]
            replaced = round.tally.held.get(index) if index is not None else None
            try:
                await self._control.create(job_pods.make_pod(job, index, replaced), job)
            except errors.StatusError as error:
                if not is_namespace_terminating(error):
                    raise

        created, error = await slow_start_batch(len(indexes), create)
        for _ in range(len(indexes) - created):
            self._memory.expected.creation_observed(key)
        round.active += created
        if error is not None and not isinstance(error, errors.StatusError):
            raise error
        round.error = error

    async def _indexes_to_create(self, round: _Round, count: int) -> list[int] | list[None]:
        """The indexes of pods to create now (None for pods without); none while failures are waited out."""
        job, tally, now = round.job, round.tally, self._clock.now()
        if not limits_each_index(job):
            wait = round.failures.wait(now)
            if wait > 0:
                round.look_again(wait)
                return []
            if not is_indexed(job):
                return [None] * count
            return await weighed(tally.weight, job_pods.pending_indexes, tally, count)
        pending = await weighed(tally.weight, job_pods.pending_indexes, tally, count)
        waits = {index: wait_of_index(tally.held.get(index), now) for index in pending}
        later = [wait for wait in waits.values() if wait > 0]
        if later:
            round.look_again(min(later))
        return [index for index, wait in waits.items() if wait <= 0]

    async def _delete(
        self, round: _Round, pods: Sequence[Object], *, release: bool
    ) -> tuple[list[Object], errors.StatusError | None]:
        """Delete pods, if asked for after taking their finalizer off; those that are on their way, and a failure."""

        async def delete(pod: Object) -> errors.StatusError | None:
            metadata = pod["metadata"]
            try:
                if release:
                    await release_pod(self._pod_client, pod)
                await self._control.delete(metadata["namespace"], metadata["name"], round.job, metadata["uid"])
            except errors.StatusError as error:
                self._memory.expected.deletion_of_observed(round.key, metadata["uid"])
                return None if isinstance(error, errors.NotFound) else error
            return None

        results = await results_of(pods, delete)
        deleted = [pod for pod, error in zip(pods, results, strict=True) if error is None]
        return deleted, next(filter(None, results), None)

    def _note_deleted(self, round: _Round, deleted: Sequence[Object]) -> None:
        round.active -= len(deleted)
        round.terminating += len(deleted)
        round.ready -= sum(map(is_ready, deleted))

    # Status

    async def _write(self, round: _Round, dirty: bool) -> None:
        counts = {"active": round.active, "ready": round.ready, "terminating": round.terminating}
        count = await weighed(round.tally.weight, Count, round.job, round.tally, round.ending, self._clock.now())
        count.is_dirty = dirty | _set_counts(round.job["status"], counts)
        await weighed(round.tally.weight, count.enter_pods)
        if count.is_dirty:
            count.job = await self._update_status(round.key, count.job)
            self._memory.failures[round.key] = round.failures
        error = await self._release(round.key, count)
        changed = count.drop_released()
        finished = error is None and count.may_finish(round.terminating)
        if finished:
            self._finish(count)
        if changed or finished:
            count.job = await self._update_status(round.key, count.job)
        if finished:
            self._tell_finished(count)
        if error is not None:
            raise error

    async def _release(self, key: Key, count: Count) -> errors.StatusError | None:
        uids = [pod["metadata"]["uid"] for pod in count.to_release]
        if not uids:
            return None
        self._memory.releases.expect(key, uids)
        released, error = await release_all(self._pod_client, count.to_release)
        count.with_finalizer -= released
        for uid in set(uids) - released:
            self._memory.releases.observed(key, uid)
        for pod in count.to_release:
            if self._pods.lister.get(*key_of(pod)) is None:
                self._memory.releases.observed(key, pod["metadata"]["uid"])
        return error

    def _finish(self, count: Count) -> None:
        assert count.ending is not None
        status = count.job["status"]
        ensure(status, count.ending)
        if count.ending["type"] == "Complete":
            status["completionTime"] = count.ending["lastTransitionTime"]

    def _tell_finished(self, count: Count) -> None:
        job, ending = count.job, count.ending
        assert ending is not None
        if ending["type"] != "Complete":
            self._events.event(job, "Warning", ending["reason"], ending["message"])
            return
        wanted = job["spec"].get("completions")
        if wanted is not None and job["status"].get("succeeded", 0) > wanted:
            text = "Too many succeeded pods running after completion count reached"
            self._events.event(job, "Warning", "TooManySucceededPods", text)
        self._events.event(job, "Normal", "Completed", "Job completed")

    async def _update_status(self, key: Key, job: Object) -> Object:
        written = await self._job_client.update_status(job)
        written.setdefault("status", {}).setdefault("uncountedTerminatedPods", {})
        self._memory.writes.wrote(key, self._jobs, written)
        return written


def _as_adopted(pod: Object) -> Object:
    """A pod as it is after it was adopted, which our view does not show yet."""
    adopted = working_copy(pod)
    finalizers = adopted["metadata"].setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    return adopted


def _set_counts(status: Object, counts: dict[str, int]) -> bool:
    """Enter counts; whether any of them is new. No active pods are not mentioned, no ready ones are."""
    changed = False
    for name, count in counts.items():
        known = status.get(name)
        if name == "active" and not count:
            changed |= bool(status.pop(name, None))
        elif known != count:
            status[name] = count
            changed = True
    return changed
