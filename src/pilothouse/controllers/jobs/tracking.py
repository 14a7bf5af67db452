"""Counts each ended pod of a job exactly once, through crashes and conflicts:

    1. write the uids of ended pods into ``uncountedTerminatedPods``   (and that the job is about to end)
    2. take the finalizer off those pods: from now on they may vanish
    3. count the uids whose pod has lost its finalizer, and drop them from the list
    4. say that the job has ended, once nothing is uncounted and nothing terminates

A crash between any two steps is made good by the next round: a uid in the list is not added again, and one whose pod
has no finalizer any more is counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

from pilothouse.controllers.jobs.conditions import Condition, condition, true_condition
from pilothouse.controllers.jobs.indexes import Indexes, index_of
from pilothouse.controllers.jobs.policies import judge
from pilothouse.controllers.jobs.specs import FINALIZER, has_failed, is_indexed, is_tracked
from pilothouse.controllers.jobs.tally import Tally
from pilothouse.controllers.runtime.batches import results_of
from pilothouse.controllers.runtime.client import ResourceClient
from pilothouse.machinery import errors
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant

_MOST_UNCOUNTED: Final = 500
K = TypeVar("K", bound=Hashable)


async def release_pod(pods: ResourceClient, pod: Object) -> None:
    """Take the finalizer off a pod. Raises ``NotFound`` if it has gone."""
    if is_tracked(pod):
        metadata = pod["metadata"]
        patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        await pods.patch(metadata["namespace"], metadata["name"], patch, "strategic")


class Releases(Generic[K]):
    """Pods whose finalizer was taken off and is still seen in the lister, by the key of their job."""

    def __init__(self) -> None:
        self._uids: dict[K, set[str]] = {}

    def expect(self, key: K, uids: Sequence[str]) -> None:
        """These are about to be released."""
        self._uids.setdefault(key, set()).update(uids)

    def observed(self, key: K, uid: str) -> None:
        """A pod was seen without its finalizer, or could not be released."""
        uids = self._uids.get(key)
        if uids is not None:
            uids.discard(uid)
            if not uids:
                del self._uids[key]

    def uids(self, key: K) -> frozenset[str]:
        """What has yet to be seen."""
        return frozenset(self._uids.get(key, ()))

    def forget(self, key: K) -> None:
        """The job has gone."""
        self._uids.pop(key, None)


class Count:
    """Steps 1, 3 and 4 for one round: what of the status changes, with no calls to the server."""

    def __init__(self, job: Object, tally: Tally, ending: Condition | None, now: Instant) -> None:
        self.job, self._tally, self.ending, self._now = job, tally, ending, now
        self.with_finalizer = {pod["metadata"]["uid"] for pod in tally.pods if tally.is_tracked(pod)}
        self.to_release: list[Object] = []
        self.is_dirty = False
        self._is_full = False

    def enter_pods(self) -> None:
        """Step 1: enter what has ended, and the end of the job itself."""
        uncounted = self._uncounted()
        self.is_dirty |= self.drop_released()
        new_indexes: list[int] = []
        for pod in self._in_order():
            if not self._tally.is_tracked(pod) or not self._may_release(pod):
                continue
            self.to_release.append(pod)
            self._enter(pod, uncounted, new_indexes)
            entered = len(new_indexes) + sum(len(uids) for uids in uncounted.values())
            if entered >= _MOST_UNCOUNTED:
                self._is_full = True
                break
        if is_indexed(self.job):
            self._write_indexes(new_indexes)
        self._announce_end()

    def _uncounted(self) -> dict[str, list[str]]:
        uncounted: dict[str, list[str]] = self.job["status"].setdefault("uncountedTerminatedPods", {})
        return uncounted

    def _in_order(self) -> Sequence[Object]:
        pods = self._tally.pods
        return sorted(pods, key=lambda pod: -1 if (i := index_of(pod)) is None else i) if is_indexed(self.job) else pods

    def _may_release(self, pod: Object) -> bool:
        succeeded = (pod.get("status") or {}).get("phase") == "Succeeded"
        if self.job["metadata"].get("deletionTimestamp") or self.ending is not None or succeeded:
            return True
        if not has_failed(pod, self.job):
            return False
        index = index_of(pod)
        held = self._tally.held.get(index) if index is not None else None
        return held is None or held["metadata"]["uid"] != pod["metadata"]["uid"]

    def _enter(self, pod: Object, uncounted: dict[str, list[str]], new_indexes: list[int]) -> None:
        uid, tally = pod["metadata"]["uid"], self._tally
        if (pod.get("status") or {}).get("phase") == "Succeeded" and uid not in tally.uncounted_failed:
            index = index_of(pod)
            if not is_indexed(self.job):
                if uid not in tally.uncounted_succeeded:
                    uncounted.setdefault("succeeded", []).append(uid)
                    self.is_dirty = True
            elif index is not None and tally.has_valid_index(pod) and index not in tally.known_succeeded_indexes:
                new_indexes.append(index)
                self.is_dirty = True
        elif has_failed(pod, self.job) or self._ends_badly():
            fresh = uid not in tally.uncounted_failed and tally.has_valid_index(pod)
            if fresh and judge(self.job, pod).counts:
                uncounted.setdefault("failed", []).append(uid)
                self.is_dirty = True

    def _ends_badly(self) -> bool:
        """When a job fails, all pods that it stops count as failed."""
        return self.ending is not None and self.ending["type"] != "SuccessCriteriaMet"

    def _write_indexes(self, new: Sequence[int]) -> None:
        status = self.job["status"]
        succeeded = self._tally.succeeded_indexes | Indexes.of(new)
        self._set(status, "completedIndexes", str(succeeded) or None)
        self._set(status, "succeeded", len(succeeded) or None)
        failed = self._tally.failed_indexes
        self._set(status, "failedIndexes", None if failed is None else str(failed))

    def _set(self, status: Object, name: str, value: Any) -> None:
        if status.get(name) != value:
            self.is_dirty = True
            if value is None:
                del status[name]
            else:
                status[name] = value

    def _announce_end(self) -> None:
        """Write the condition that precedes the last one, and turn to the last one."""
        ending = self.ending
        if ending is None or ending["type"] not in ("FailureTarget", "SuccessCriteriaMet"):
            return
        if true_condition(self.job, ending["type"]) is None:
            self.job["status"].setdefault("conditions", []).append(ending)
            self.is_dirty = True
        last = "Failed" if ending["type"] == "FailureTarget" else "Complete"
        self.ending = condition(last, "True", ending.get("reason", ""), ending.get("message", ""), self._now)

    def drop_released(self) -> bool:
        """Step 3: count what has lost its finalizer; whether that changed anything."""
        changed = False
        status, uncounted = self.job["status"], self._uncounted()
        for name in ("succeeded", "failed"):
            uids = uncounted.get(name) or []
            left = [uid for uid in uids if uid in self.with_finalizer]
            if len(left) != len(uids):
                status[name] = (status.get(name) or 0) + len(uids) - len(left)
                uncounted[name] = left
                changed = True
            if not left:
                uncounted.pop(name, None)
        return changed

    def may_finish(self, terminating: int) -> bool:
        """Step 4: whether the job may be said to have ended."""
        return self.ending is not None and not self._is_full and not any(self._uncounted().values()) and not terminating


async def release_all(pods: ResourceClient, chosen: Sequence[Object]) -> tuple[set[str], errors.StatusError | None]:
    """Step 2: release pods; the uids of those that were (or have gone), and the first failure."""

    async def release(pod: Object) -> errors.StatusError | None:
        try:
            await release_pod(pods, pod)
        except errors.NotFound:
            pass
        except errors.StatusError as error:
            return error
        return None

    results = await results_of(chosen, release)
    done = {pod["metadata"]["uid"] for pod, error in zip(chosen, results, strict=True) if error is None}
    return done, next(filter(None, results), None)
