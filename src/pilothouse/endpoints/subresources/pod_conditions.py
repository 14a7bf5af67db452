"""Conditions of pods that the server itself sets."""

from __future__ import annotations

from pilothouse.machinery.objects import Object


def set_pod_condition(status: Object, condition: Object, now: str) -> None:
    """Add or replace a condition. Its time of transition stays while its status does."""
    found = list(status.get("conditions") or ())
    kind, state = condition["type"], condition["status"]
    made = {"type": kind, "status": state, "lastProbeTime": None, "lastTransitionTime": now, **condition}
    for position, old in enumerate(found):
        if old.get("type") == kind:
            if old.get("status") == state:
                made["lastTransitionTime"] = old.get("lastTransitionTime")
            found[position] = made
            break
    else:
        found.append(made)
    status["conditions"] = found


def has_true_condition(status: Object, kind: str) -> bool:
    """Whether the pod has a condition of this kind that holds."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind:
            return bool(condition.get("status") == "True")
    return False
