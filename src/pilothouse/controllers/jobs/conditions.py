"""The conditions of a job.

FailureTarget        it is going to fail: pods are being deleted     ──► Failed
SuccessCriteriaMet   it has succeeded: pods are being deleted        ──► Complete
"""

from __future__ import annotations

from typing import Any

from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time

Condition = dict[str, Any]


def condition(type: str, status: str, reason: str, message: str, now: Instant) -> Condition:
    """A new condition."""
    at = format_time(now)
    return {
        "type": type,
        "status": status,
        "lastProbeTime": at,
        "lastTransitionTime": at,
        "reason": reason,
        "message": message,
    }


def failure(reason: str, message: str, now: Instant) -> Condition:
    """The job is going to fail."""
    return condition("FailureTarget", "True", reason, message, now)


def success(reason: str, message: str, now: Instant) -> Condition:
    """The job has done what it was to do."""
    return condition("SuccessCriteriaMet", "True", reason, message, now)


def true_condition(job: Object, type: str) -> Condition | None:
    """A condition that holds."""
    found = condition_of(job, type)
    return found if found is not None and found["status"] == "True" else None


def is_finished(job: Object) -> bool:
    """Whether the job is complete or has failed for good."""
    return any(true_condition(job, type) is not None for type in ("Complete", "Failed"))


def ensure(status: Object, new: Condition) -> bool:
    """Put a condition into a status; whether that changed anything. One that never held need not be denied."""
    conditions: list[Condition] = status.setdefault("conditions", [])
    for at, known in enumerate(conditions):
        if known["type"] == new["type"]:
            same = all(known.get(name) == new[name] for name in ("status", "reason", "message"))
            if not same:
                conditions[at] = new
            return not same
    if new["status"] == "False":
        return False
    conditions.append(new)
    return True
