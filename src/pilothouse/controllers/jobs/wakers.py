"""What wakes a job: changes of the job itself at once, those of its pods a moment later, many at a time.

The pods of a big job end by the hundred; one look at all of them is enough.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.jobs.conditions import is_finished
from pilothouse.controllers.jobs.memory import JobMemory
from pilothouse.controllers.jobs.orphans import OrphanRelease
from pilothouse.controllers.jobs.specs import is_tracked
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.owners import controller_of
from pilothouse.controllers.runtime.selecting import Selecting
from pilothouse.controllers.runtime.work_queue import WorkQueue
from pilothouse.machinery.objects import Object

_BATCH_SECONDS: Final = 0.2


class JobWakers:
    """Handlers of jobs and pods: they note what was seen and put jobs into the queue."""

    def __init__(
        self,
        name: str,
        jobs: Informer,
        pods: Informer,
        queue: WorkQueue[Key],
        memory: JobMemory,
        orphans: OrphanRelease,
    ) -> None:
        self._jobs, self._queue, self._memory, self._orphans = jobs, queue, memory, orphans
        self._adopters = Selecting(jobs, self._later)
        jobs.add_handler(self._job_added, self._job_changed, self._job_gone, name=name)
        pods.add_handler(self._pod_added, self._pod_changed, self._pod_deleted, name=name)

    def _later(self, key: Key) -> None:
        self._queue.add_after(key, _BATCH_SECONDS)

    def _job_added(self, job: Object) -> None:
        if is_finished(job):
            self._job_over(job)
        else:
            self._queue.add(key_of(job))

    def _job_over(self, job: Object) -> None:
        """Forget a job that has ended, and let go of pods that it did not know of when it ended."""
        self._memory.forget(key_of(job))
        self._orphans.job_over(job)

    def _job_changed(self, old: Object, new: Object) -> None:
        if is_finished(new):
            self._job_over(new)
        elif old["metadata"].get("generation") == new["metadata"].get("generation"):
            self._later(key_of(new))
        else:
            self._queue.add(key_of(new))

    def _job_gone(self, job: Object) -> None:
        self._queue.add(key_of(job))
        self._orphans.job_over(job)

    def _job_of(self, pod: Object) -> Object | None:
        reference = controller_of(pod)
        if reference is None or reference["kind"] != "Job":
            return None
        job = self._jobs.lister.get(pod["metadata"]["namespace"], reference["name"])
        return job if job is not None and job["metadata"]["uid"] == reference["uid"] else None

    def _pod_added(self, pod: Object) -> None:
        if pod["metadata"].get("deletionTimestamp"):
            self._pod_going(pod)
            return
        job = self._job_of(pod)
        if job is not None and is_finished(job):
            self._orphans.look_at(pod)
        elif job is not None:
            self._memory.expected.creation_observed(key_of(job))
            self._later(key_of(job))
        elif controller_of(pod) is None:
            self._wake_adopters(pod)

    def _pod_changed(self, old: Object, new: Object) -> None:
        if new["metadata"].get("deletionTimestamp"):
            self._pod_going(new)
            return
        owners = [job for pod in (old, new) if (job := self._job_of(pod)) is not None]
        for job in owners:
            if is_finished(job):
                self._orphans.look_at(new)
                continue
            if not is_tracked(new):
                self._memory.releases.observed(key_of(job), new["metadata"]["uid"])
            self._later(key_of(job))
        if controller_of(new) is None:
            self._wake_adopters(new)

    def _wake_adopters(self, pod: Object) -> None:
        self._orphans.look_at(pod)
        self._adopters.wake(pod)

    def _pod_deleted(self, pod: Object) -> None:
        job = self._job_of(pod)
        if job is not None:
            self._memory.releases.observed(key_of(job), pod["metadata"]["uid"])
        self._pod_going(pod)

    def _pod_going(self, pod: Object) -> None:
        """A pod is being deleted, or was."""
        job = self._job_of(pod)
        if job is None or is_finished(job):
            self._orphans.look_at(pod)
            return
        key, uid = key_of(job), pod["metadata"]["uid"]
        self._memory.expected.deletion_of_observed(key, uid)
        if not is_tracked(pod):
            self._memory.releases.observed(key, uid)
        self._later(key)
