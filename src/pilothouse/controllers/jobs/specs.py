"""What a job asks for, read from its spec, and how its pods are marked."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.objects import Object

FINALIZER: Final = "batch.kubernetes.io/job-tracking"
CONTROLLER: Final = "kubernetes.io/job-controller"


def is_indexed(job: Object) -> bool:
    """Whether each pod has an index of its own to complete."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_suspended(job: Object) -> bool:
    """Whether no pod may run for now."""
    return bool(job["spec"].get("suspend"))


def completions_of(job: Object) -> int | None:
    """How many pods are to succeed; None if any success is enough."""
    wanted: int | None = job["spec"].get("completions")
    return wanted


def limits_each_index(job: Object) -> bool:
    """Whether failures are counted for each index apart."""
    return job["spec"].get("backoffLimitPerIndex") is not None


def waits_for_failed(job: Object) -> bool:
    """Whether a pod is replaced only when it has ended, not already while it is being deleted."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def is_managed_elsewhere(job: Object) -> bool:
    """Whether another controller looks after the job."""
    manager = job["spec"].get("managedBy")
    return manager is not None and manager != CONTROLLER


def is_tracked(pod: Object) -> bool:
    """Whether the pod has yet to be counted."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def has_failed(pod: Object, job: Object) -> bool:
    """Whether the pod counts as failed. One that is deleted does before it ends, unless the job waits for the end."""
    phase = (pod.get("status") or {}).get("phase")
    if phase == "Failed":
        return True
    if waits_for_failed(job):
        return False
    return bool(pod["metadata"].get("deletionTimestamp")) and phase != "Succeeded"
