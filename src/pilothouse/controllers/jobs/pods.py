"""Which pods of a job are created next, what they look like, and which are deleted when there are too many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from pilothouse.controllers.jobs.backoff import FAILURES, IGNORED_FAILURES, failures_of
from pilothouse.controllers.jobs.indexes import INDEX, index_of, indexes_of
from pilothouse.controllers.jobs.policies import judge
from pilothouse.controllers.jobs.specs import FINALIZER, completions_of, is_indexed, limits_each_index, waits_for_failed
from pilothouse.controllers.jobs.tally import Tally
from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.runtime.pod_control import pod_from_template
from pilothouse.controllers.runtime.pods import condition_of, is_ready, phase_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import parse_time

_LONGEST_PREFIX: Final = 58
_ENVIRONMENT: Final = "JOB_COMPLETION_INDEX"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def wanted_active(job: Object, succeeded: int, active: int) -> int:
    """How many pods are to run now."""
    parallelism: int = job["spec"]["parallelism"]
    completions = completions_of(job)
    if completions is None:
        return active if succeeded else parallelism
    return max(0, min(completions - succeeded, parallelism))


def pending_indexes(tally: Tally, count: int) -> list[int]:
    """The first indexes that neither run nor are over."""
    taken = tally.succeeded_indexes | indexes_of(tally.active)
    if waits_for_failed(tally.job):
        taken |= indexes_of(tally.terminating)
    if tally.failed_indexes is not None:
        taken |= tally.failed_indexes
    return taken.missing(tally.job["spec"]["completions"], count)


def make_pod(job: Object, index: int | None, replaced: Object | None) -> Object:
    """A pod of the job; for an index, in place of the pod that failed there before."""
    pod = pod_from_template(job["spec"]["template"], job, controller_reference(job, "Job", "batch/v1"))
    metadata = pod["metadata"]
    finalizers = metadata.setdefault("finalizers", [])
    if FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    if index is None:
        return pod
    name = job["metadata"]["name"]
    metadata["generateName"] = _prefix(name, index)
    metadata.setdefault("labels", {})[INDEX] = str(index)
    metadata.setdefault("annotations", {})[INDEX] = str(index)
    if limits_each_index(job):
        metadata["annotations"] |= _failure_counts(job, replaced)
    pod["spec"]["hostname"] = f"{name}-{index}"
    for part in ("initContainers", "containers"):
        if pod["spec"].get(part):
            pod["spec"][part] = list(map(_told_index, pod["spec"][part]))
    return pod


def _prefix(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix if len(name + suffix) > _LONGEST_PREFIX else name + suffix


def _told_index(container: Object) -> Object:
    """A container that knows the index of its pod."""
    variables = container.get("env") or ()
    if any(each["name"] == _ENVIRONMENT for each in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": _ENVIRONMENT, "valueFrom": source}]}


def _failure_counts(job: Object, replaced: Object | None) -> dict[str, str]:
    if replaced is None:
        return {FAILURES: "0"}
    failures, ignored = failures_of(replaced)
    if judge(job, replaced).counts:
        failures += 1
    else:
        ignored += 1
    return {FAILURES: str(failures), **({IGNORED_FAILURES: str(ignored)} if ignored else {})}


def pods_to_remove(job: Object, pods: Sequence[Object], at_least: int) -> list[Object]:
    """Pods without a valid index, all but the best of each index, and of the rest the least advanced."""
    removed: list[Object] = []
    left = list(pods)
    if is_indexed(job):
        removed, left = _split_by_index(pods, job["spec"]["completions"])
    missing = at_least - len(removed)
    if missing > 0:
        removed += sorted(left, key=_advance)[:missing]
    return removed


def _split_by_index(pods: Sequence[Object], completions: int) -> tuple[list[Object], list[Object]]:
    removed: list[Object] = []
    best: dict[int, Object] = {}
    for pod in sorted(pods, key=_advance, reverse=True):
        index = index_of(pod)
        if index is None or index >= completions or index in best:
            removed.append(pod)
        else:
            best[index] = pod
    return removed, [best[index] for index in sorted(best)]


def _advance(pod: Object) -> tuple[Any, ...]:
    """How far a pod has come; of equals the older, and the less often restarted, is further."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    restarts = max((int(each.get("restartCount") or 0) for each in status.get("containerStatuses") or ()), default=0)
    since = (condition_of(pod, "Ready") or {}).get("lastTransitionTime") or ""
    return (
        bool(pod["spec"].get("nodeName")),
        _PHASES.get(phase_of(pod), 0),
        is_ready(pod),
        _youth(since if is_ready(pod) else ""),
        -restarts,
        _youth(metadata.get("creationTimestamp") or ""),
    )


def _youth(time: str) -> float:
    """Sorts the young before the old; no time at all is younger than any."""
    return -parse_time(time).seconds if time else -math.inf
