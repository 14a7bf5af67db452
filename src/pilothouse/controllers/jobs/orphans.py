"""Takes the tracking finalizer off pods that no job will count any more, so that they can go.

Pods whose job has ended or vanished, or that lost their owner, are found by their own events and, when a job ends or
vanishes, through its selector.
"""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.jobs.conditions import is_finished
from pilothouse.controllers.jobs.specs import is_managed_elsewhere, is_tracked
from pilothouse.controllers.jobs.tracking import release_pod
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.controllers.runtime.clock import Clock
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.controllers.runtime.informer import Informer
from pilothouse.controllers.runtime.owners import controller_of
from pilothouse.controllers.runtime.work_queue import WorkQueue
from pilothouse.machinery import errors, labels
from pilothouse.machinery.backoff import Backoff
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor

_NAME: Final = "job-controller orphans"


class OrphanRelease:
    """Keys are pods."""

    def __init__(self, jobs: Informer, pods: Informer, client: ResourceClient, clock: Clock) -> None:
        self._jobs, self._pods, self._client = jobs, pods, client
        queue: WorkQueue[Key] = WorkQueue(Backoff(1.0, 60.0), clock, "job_orphan_pod")
        self._controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=5, queue=queue, wait_for=[jobs, pods], clock=clock
        )

    def start(self, supervisor: Supervisor) -> None:
        """Begin to release."""
        self._controller.start(supervisor)

    def look_at(self, pod: Object) -> None:
        """The pod may be an orphan."""
        if is_tracked(pod):
            self._controller.queue.add(key_of(pod))

    def job_over(self, job: Object) -> None:
        """A job has ended or gone: none of its pods is to be held back."""
        selector = labels.from_object(job["spec"].get("selector"))
        if not selector.empty:
            for pod in self._pods.lister.list(job["metadata"]["namespace"], selector):
                self.look_at(pod)

    async def _reconcile(self, key: Key) -> None:
        pod = self._pods.lister.get(*key)
        if pod is not None and self._is_orphan(pod):
            try:
                await release_pod(self._client, pod)
            except errors.NotFound:
                return

    def _is_orphan(self, pod: Object) -> bool:
        reference = controller_of(pod)
        if reference is None:
            return True
        if reference["kind"] != "Job" or reference["apiVersion"] != "batch/v1":
            return False
        job = self._jobs.lister.get(pod["metadata"]["namespace"], reference["name"])
        if job is None or job["metadata"]["uid"] != reference["uid"]:
            return True
        return is_finished(job) and not is_managed_elsewhere(job)
