"""What controllers ask of pods: ready, available, active, over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, parse_time


def condition_of(obj: Object, type: str) -> dict[str, Any] | None:
    """A condition of the object's status by its type."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type:
            found: dict[str, Any] = condition
            return found
    return None


def phase_of(pod: Object) -> str:
    """The phase; a pod that nobody has touched is pending."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def is_ready(pod: Object) -> bool:
    """Whether the condition Ready is true."""
    condition = condition_of(pod, "Ready")
    return condition is not None and condition.get("status") == "True"


def is_available(pod: Object, min_ready_seconds: int, now: Instant) -> bool:
    """Whether the pod has been ready for so long."""
    condition = condition_of(pod, "Ready")
    if condition is None or condition.get("status") != "True":
        return False
    if not min_ready_seconds:
        return True
    since = condition.get("lastTransitionTime")
    return bool(since) and now.since(parse_time(str(since))) >= min_ready_seconds


def is_terminal(pod: Object) -> bool:
    """Whether all containers have ended for good."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Whether the pod runs or will run: neither over nor being deleted."""
    return not is_terminal(pod) and not pod["metadata"].get("deletionTimestamp")


def seconds_until_available(pods: Iterable[Object], min_ready_seconds: int, now: Instant) -> float | None:
    """After how many seconds the next ready pod counts as available; None if all that are ready do."""
    if not min_ready_seconds:
        return None
    waits = []
    for pod in pods:
        since = (condition_of(pod, "Ready") or {}).get("lastTransitionTime")
        if is_ready(pod) and since:
            left = min_ready_seconds - now.since(parse_time(since))
            if left > 0:
                waits.append(left)
    return min(waits) + 0.01 if waits else None
