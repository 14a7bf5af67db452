"""Deletes jobs so many seconds after they have ended, where they say so (``ttlSecondsAfterFinished``)."""

from __future__ import annotations

from typing import Final

from pilothouse.controllers.jobs.conditions import is_finished, true_condition
from pilothouse.controllers.manager.context import ControllerContext
from pilothouse.controllers.runtime.controller import Controller
from pilothouse.controllers.runtime.indexer import Key, key_of
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.supervision import Supervisor
from pilothouse.machinery.times import Instant, parse_time

_NAME: Final = "ttl-after-finished-controller"


def start(context: ControllerContext) -> None:
    """Start the controller of jobs' time to live."""
    TTLAfterFinished(context).start(context.supervisor)


def seconds_left(job: Object, now: Instant) -> float | None:
    """How long a job may still stay; None if it has not ended, is going already, or stays for ever."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    if ttl is None or job["metadata"].get("deletionTimestamp") or not is_finished(job):
        return None
    ended = true_condition(job, "Complete") or true_condition(job, "Failed")
    assert ended is not None
    return float(ttl) - now.since(parse_time(ended["lastTransitionTime"]))


class TTLAfterFinished:
    """Keys are jobs."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._jobs = context.informers.of("batch", "v1", "jobs")
        self._client = context.client(_NAME).of("batch", "v1", "jobs")
        self._controller: Controller[Key] = Controller(
            _NAME, self._reconcile, workers=5, wait_for=[self._jobs], clock=context.clock
        )
        self._jobs.add_handler(self._seen, lambda old, new: self._seen(new), name=_NAME)

    def start(self, supervisor: Supervisor) -> None:
        """Begin to delete."""
        self._controller.start(supervisor)

    def _seen(self, job: Object) -> None:
        if seconds_left(job, self._clock.now()) is not None:
            self._controller.queue.add(key_of(job))

    async def _reconcile(self, key: Key) -> float | None:
        job = self._jobs.lister.get(*key)
        left = None if job is None else seconds_left(job, self._clock.now())
        if left is None or left > 0:
            return left
        try:
            # The time to live may have been prolonged since our view was made.
            job = await self._client.get(*key)
            left = seconds_left(job, self._clock.now())
            if left is None or left > 0:
                return left
            await self._client.delete(*key, uid=job["metadata"]["uid"], propagation="Foreground")
        except errors.NotFound:
            return None
        return None
