"""Which pods of a stateful set are deleted next so that they come back from the new revision, and what is counted.

From the highest ordinal down to the partition, as many as may be missing at a time. With parallel management, pods that
do not work anyway go first and do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.controllers.runtime.pods import is_available, is_ready, phase_of
from pilothouse.controllers.runtime.scaled_values import scaled
from pilothouse.controllers.stateful_sets.identity import first_ordinal, ordinal_of, replicas_of, revision_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant


def is_created(pod: Object) -> bool:
    """Whether the pod is there, and not one that is yet to be created."""
    return bool(pod["metadata"].get("uid"))


def is_terminating(pod: Object) -> bool:
    """Whether the pod is being deleted."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_running_and_ready(pod: Object) -> bool:
    """Whether the pod runs and is ready."""
    return is_created(pod) and phase_of(pod) == "Running" and is_ready(pod)


def min_ready_seconds(stateful_set: Object) -> int:
    """How long a pod has to be ready to be available."""
    return int(stateful_set["spec"].get("minReadySeconds") or 0)


def is_unavailable(stateful_set: Object, pod: Object, now: Instant) -> bool:
    """Whether the pod cannot be counted on."""
    return not is_available(pod, min_ready_seconds(stateful_set), now) or is_terminating(pod)


def is_parallel(stateful_set: Object) -> bool:
    """Whether pods need not wait for each other."""
    return bool(stateful_set["spec"].get("podManagementPolicy") == "Parallel")


def partition_of(stateful_set: Object) -> int | None:
    """The number of pods that keep the old revision; None if the strategy does not say."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    return None if rolling is None else int(rolling.get("partition") or 0)


def max_unavailable(stateful_set: Object) -> int:
    """How many pods may be missing during an update."""
    strategy = stateful_set["spec"].get("updateStrategy") or {}
    given = (strategy.get("rollingUpdate") or {}).get("maxUnavailable")
    return max(1, scaled(1 if given is None else given, replicas_of(stateful_set), round_up=False))


def is_from_current(stateful_set: Object, ordinal: int) -> bool:
    """Whether a missing pod comes back from the current revision, not from the new one."""
    strategy = (stateful_set["spec"].get("updateStrategy") or {}).get("type")
    partition, first = partition_of(stateful_set), first_ordinal(stateful_set)
    if partition is not None:
        return ordinal < first + partition
    current = int((stateful_set.get("status") or {}).get("currentReplicas") or 0)
    return strategy == "RollingUpdate" and ordinal < first + current


def pods_to_update(
    stateful_set: Object, replicas: Sequence[Object], left_out: int, revision: str, now: Instant
) -> list[Object]:
    """The pods to delete now, in order; ``left_out`` are missing beside those that are told."""
    if (stateful_set["spec"].get("updateStrategy") or {}).get("type") == "OnDelete":
        return []
    unavailable = [pod for pod in replicas if is_unavailable(stateful_set, pod, now)]
    budget = max_unavailable(stateful_set) - len(unavailable) - left_out
    begin = first_ordinal(stateful_set) + (partition_of(stateful_set) or 0)
    old = [
        pod
        for pod in reversed(replicas)
        if ordinal_of(pod) >= begin and revision_of(pod) != revision and not is_terminating(pod)
    ]
    if not is_parallel(stateful_set):
        return old[: max(0, budget)]
    seconds = min_ready_seconds(stateful_set)
    broken = [pod for pod in old if not is_available(pod, seconds, now)]
    working = [pod for pod in old if is_available(pod, seconds, now)]
    return [*broken, *working[: max(0, budget)]]


def counts_of(stateful_set: Object, pods: Iterable[Object], current: str, update: str, now: Instant) -> Object:
    """How many pods there are, work, and have which revision."""
    pods = [pod for pod in pods if is_created(pod)]
    ready = [pod for pod in pods if is_running_and_ready(pod)]
    staying = [revision_of(pod) for pod in pods if not is_terminating(pod)]
    return {
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(1 for pod in ready if is_available(pod, min_ready_seconds(stateful_set), now)),
        "currentReplicas": staying.count(current),
        "updatedReplicas": staying.count(update),
    }


def status_of(stateful_set: Object, counts: Object, current: str, update: str, collisions: int) -> Object:
    """The status; when all pods have the new revision and are ready, it becomes the current one."""
    wanted = replicas_of(stateful_set)
    counts = dict(counts)
    if counts["updatedReplicas"] == counts["readyReplicas"] == counts["replicas"] == wanted:
        counts["currentReplicas"], current = counts["updatedReplicas"], update
    status: Object = {"observedGeneration": stateful_set["metadata"].get("generation") or 0}
    status |= {name: count for name, count in counts.items() if count or name in ("replicas", "availableReplicas")}
    status |= {"currentRevision": current, "updateRevision": update, "collisionCount": collisions}
    conditions = (stateful_set.get("status") or {}).get("conditions")
    if conditions:
        status["conditions"] = conditions
    return status
