"""What a job's pods amount to at one moment. Pure: a job and its pods go in, numbers and sets come out.

A pod that has ended is counted once. Until then it has a finalizer; between its entry in the status under
``uncountedTerminatedPods`` and the loss of its finalizer it is known by its uid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from pilothouse.controllers.jobs.backoff import failures_of, finish_time
from pilothouse.controllers.jobs.indexes import Indexes, index_of, indexes_of
from pilothouse.controllers.jobs.policies import judge
from pilothouse.controllers.jobs.specs import has_failed, is_indexed, is_tracked, limits_each_index
from pilothouse.controllers.runtime.pods import is_active, is_ready, is_terminal
from pilothouse.machinery.lazy import lazy
from pilothouse.machinery.objects import Object

_INDEX: Final = 4
"""How many bytes of usual JSON a byte of indexes is as much work as."""
_POD: Final = 50
"""The same of a pod: it is asked some ten questions."""


@dataclass(frozen=True)
class Tally:
    """A job, its pods, and the uids of those whose finalizer is gone though the view still shows it."""

    job: Object
    pods: Sequence[Object]
    released: Set[str] = frozenset()

    @property
    def weight(self) -> int:
        """What ``settle`` is as much work as, in bytes of usual JSON: of indexes that were sent, each is a value."""
        status = self.job.get("status") or {}
        return _POD * len(self.pods) + _INDEX * sum(
            len(status.get(name) or "") for name in ("completedIndexes", "failedIndexes")
        )

    def settle(self) -> None:
        """Work out what takes long where pods or indexes are many, which may be done in any thread."""
        _ = self.active, self.terminating, self.ready, self.new_succeeded, self.failed
        if is_indexed(self.job):
            _ = str(self.succeeded_indexes), str(self.failed_indexes), self.held

    @lazy
    def active(self) -> list[Object]:
        """Pods that run or will run."""
        return [pod for pod in self.pods if is_active(pod)]

    @lazy
    def terminating(self) -> list[Object]:
        """Pods that are being deleted and have not ended."""
        return [pod for pod in self.pods if pod["metadata"].get("deletionTimestamp") and not is_terminal(pod)]

    @lazy
    def ready(self) -> int:
        """How many active pods are ready."""
        return sum(map(is_ready, self.active))

    @lazy
    def uncounted_succeeded(self) -> frozenset[str]:
        """Uids that the status names as succeeded and has yet to count."""
        return self._uncounted("succeeded")

    @lazy
    def uncounted_failed(self) -> frozenset[str]:
        """Uids that the status names as failed and has yet to count."""
        return self._uncounted("failed")

    def _uncounted(self, name: str) -> frozenset[str]:
        status = self.job.get("status") or {}
        return frozenset((status.get("uncountedTerminatedPods") or {}).get(name) or ())

    def is_tracked(self, pod: Object) -> bool:
        """Whether the pod still has its finalizer, as far as we know."""
        return is_tracked(pod) and pod["metadata"]["uid"] not in self.released

    @lazy
    def new_succeeded(self) -> list[Object]:
        """Succeeded pods that the status does not know of."""
        return self._new(self.uncounted_succeeded, lambda pod: (pod.get("status") or {}).get("phase") == "Succeeded")

    @lazy
    def new_failed(self) -> list[Object]:
        """Failed pods that the status does not know of."""
        return self._new(self.uncounted_failed, lambda pod: has_failed(pod, self.job))

    def _new(self, known: Set[str], test: Callable[[Object], bool]) -> list[Object]:
        return [
            pod
            for pod in self.pods
            if self.is_tracked(pod) and pod["metadata"]["uid"] not in known and self.has_valid_index(pod) and test(pod)
        ]

    def has_valid_index(self, pod: Object) -> bool:
        """Whether the pod has an index below the completions; in a job without indexes every pod has."""
        if not is_indexed(self.job):
            return True
        index = index_of(pod)
        return index is not None and index < self.job["spec"]["completions"]

    @lazy
    def failed(self) -> int:
        """How many failures count towards the limit."""
        known = (self.job.get("status") or {}).get("failed") or 0
        new = sum(1 for pod in self.new_failed if judge(self.job, pod).counts)
        return int(known) + new + len(self.uncounted_failed)

    @lazy
    def succeeded(self) -> int:
        """How many pods, or indexes, have succeeded."""
        if is_indexed(self.job):
            return len(self.succeeded_indexes)
        known = (self.job.get("status") or {}).get("succeeded") or 0
        return int(known) + len(self.new_succeeded) + len(self.uncounted_succeeded)

    @lazy
    def known_succeeded_indexes(self) -> Indexes:
        """The indexes that the status names as succeeded."""
        text = (self.job.get("status") or {}).get("completedIndexes") or ""
        return Indexes.parse(text, self.job["spec"]["completions"])

    @lazy
    def succeeded_indexes(self) -> Indexes:
        """The indexes that have succeeded."""
        new = [
            pod
            for pod in self.pods
            if (pod.get("status") or {}).get("phase") == "Succeeded" and is_tracked(pod) and self.has_valid_index(pod)
        ]
        return self.known_succeeded_indexes | indexes_of(new)

    @lazy
    def failed_indexes(self) -> Indexes | None:
        """The indexes that have failed for good; None where failures are not counted by index."""
        if not is_indexed(self.job) or not limits_each_index(self.job):
            return None
        text = (self.job.get("status") or {}).get("failedIndexes") or ""
        known = Indexes.parse(text, self.job["spec"]["completions"])
        new = [pod for pod in self.pods if is_tracked(pod) and self.has_valid_index(pod) and self._ends_index(pod)]
        return known | indexes_of(new)

    def _ends_index(self, pod: Object) -> bool:
        """Whether the failure of this pod is the failure of its index."""
        if not has_failed(pod, self.job):
            return False
        judgement = judge(self.job, pod)
        if judgement.action == "FailIndex":
            return True
        return judgement.counts and failures_of(pod)[0] >= self.job["spec"]["backoffLimitPerIndex"]

    @lazy
    def held(self) -> dict[int, Object]:
        """By index, the failed pod that stays until it is replaced, so that its count of failures is handed on."""
        failed_indexes = self.failed_indexes
        if failed_indexes is None:
            return {}
        over = self.succeeded_indexes | failed_indexes | indexes_of(self.active)
        held: dict[int, Object] = {}
        for pod in self._new(frozenset(), lambda pod: has_failed(pod, self.job)):
            index = index_of(pod)
            if index is None or index in over:
                continue
            other = held.get(index)
            if other is None or _is_later(pod, other):
                held[index] = pod
        return held


def _is_later(pod: Object, other: Object) -> bool:
    return sum(failures_of(other)) <= sum(failures_of(pod)) and finish_time(pod) >= finish_time(other)
