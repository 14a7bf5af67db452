"""The status of a deployment: counts over its replica sets, and conditions that tell how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pilothouse.controllers.deployments.limits import max_unavailable, replicas_of
from pilothouse.controllers.deployments.scaling import total
from pilothouse.controllers.runtime.pods import condition_of
from pilothouse.machinery.objects import Object
from pilothouse.machinery.times import Instant, format_time, parse_time

PROGRESSING: Final = "Progressing"
NEW_AVAILABLE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
_FOREVER: Final = 2**31 - 1


def has_deadline(deployment: Object) -> bool:
    """Whether progress is watched at all."""
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, _FOREVER)


def condition(type: str, status: str, reason: str, message: str, now: Instant) -> dict[str, Any]:
    """A new condition."""
    at = format_time(now)
    return {
        "type": type,
        "status": status,
        "reason": reason,
        "message": message,
        "lastUpdateTime": at,
        "lastTransitionTime": at,
    }


def set_condition(status: Object, new: dict[str, Any]) -> None:
    """Put a condition into a status. One that says the same stays; one of the same status keeps its transition time."""
    conditions = status.get("conditions") or []
    known = next((each for each in conditions if each["type"] == new["type"]), None)
    if known is not None and (known["status"], known.get("reason")) == (new["status"], new["reason"]):
        return
    if known is not None and known["status"] == new["status"]:
        new["lastTransitionTime"] = known.get("lastTransitionTime")
    status["conditions"] = [*(each for each in conditions if each["type"] != new["type"]), new]


def drop_condition(status: Object, type: str) -> None:
    """Take a condition out of a status."""
    if "conditions" in status:
        status["conditions"] = [each for each in status["conditions"] if each["type"] != type]


def _sum(replica_sets: Sequence[Object], name: str) -> int:
    return sum(int((each.get("status") or {}).get(name) or 0) for each in replica_sets)


def calculate(deployment: Object, every: Sequence[Object], new: Object | None, now: Instant) -> Object:
    """Counts and availability; what else is known stays."""
    known = deployment.get("status") or {}
    available = _sum(every, "availableReplicas")
    counts = {
        "replicas": _sum(every, "replicas"),
        "updatedReplicas": _sum([new] if new is not None else [], "replicas"),
        "readyReplicas": _sum(every, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(every) - available),
    }
    status: Object = {"observedGeneration": deployment["metadata"].get("generation") or 0}
    status |= {name: count for name, count in counts.items() if count}
    terminating = [(each.get("status") or {}).get("terminatingReplicas") for each in every]
    if all(each is not None for each in terminating):
        status["terminatingReplicas"] = sum(terminating)
    if known.get("collisionCount") is not None:
        status["collisionCount"] = known["collisionCount"]
    status["conditions"] = list(known.get("conditions") or [])
    least = replicas_of(deployment) - max_unavailable(deployment)
    if available >= least:
        text = "Deployment has minimum availability."
        set_condition(status, condition("Available", "True", "MinimumReplicasAvailable", text, now))
    else:
        text = "Deployment does not have minimum availability."
        set_condition(status, condition("Available", "False", "MinimumReplicasUnavailable", text, now))
    return status


def is_complete(deployment: Object, status: Object) -> bool:
    """Whether all pods are of the new revision and available."""
    wanted = replicas_of(deployment)
    counts = (status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas"))
    observed = status.get("observedGeneration", 0) >= (deployment["metadata"].get("generation") or 0)
    return bool(observed) and all(count == wanted for count in counts)


def _is_progressing(deployment: Object, status: Object) -> bool:
    before = deployment.get("status") or {}

    def old_pods(counts: Object) -> int:
        return int(counts.get("replicas", 0)) - int(counts.get("updatedReplicas", 0))

    return (
        status.get("updatedReplicas", 0) > before.get("updatedReplicas", 0)
        or old_pods(status) < old_pods(before)
        or status.get("readyReplicas", 0) > before.get("readyReplicas", 0)
        or status.get("availableReplicas", 0) > before.get("availableReplicas", 0)
    )


def _has_timed_out(deployment: Object, status: Object, now: Instant) -> bool:
    known = condition_of({"status": status}, PROGRESSING)
    if known is None or known.get("reason") == NEW_AVAILABLE:
        return False
    if known.get("reason") == TIMED_OUT:
        return True
    seconds = deployment["spec"]["progressDeadlineSeconds"]
    return bool(now.since(parse_time(known["lastUpdateTime"])) > seconds)


def rollout_status(deployment: Object, every: Sequence[Object], new: Object | None, now: Instant) -> Object:
    """The status while rolling out, with how far it has come."""
    status = calculate(deployment, every, new, now)
    if has_deadline(deployment):
        _set_progress(deployment, status, new, now)
    else:
        drop_condition(status, PROGRESSING)
    failure = next((found for each in _new_first(every, new) if (found := condition_of(each, "ReplicaFailure"))), None)
    if failure is None:
        drop_condition(status, "ReplicaFailure")
    else:
        text = failure.get("message", "")
        set_condition(status, condition("ReplicaFailure", failure["status"], failure.get("reason", ""), text, now))
    return status


def _new_first(every: Sequence[Object], new: Object | None) -> list[Object]:
    return [*([] if new is None else [new]), *(each for each in every if each is not new)]


def _set_progress(deployment: Object, status: Object, new: Object | None, now: Instant) -> None:
    current = condition_of(deployment, PROGRESSING)
    all_updated = status.get("replicas", 0) == status.get("updatedReplicas", 0)
    if all_updated and current is not None and current.get("reason") == NEW_AVAILABLE:
        return
    name = deployment["metadata"]["name"] if new is None else new["metadata"]["name"]
    who = f'{"Deployment" if new is None else "ReplicaSet"} "{name}"'
    if is_complete(deployment, status):
        text = f"{who} has successfully progressed."
        set_condition(status, condition(PROGRESSING, "True", NEW_AVAILABLE, text, now))
    elif _is_progressing(deployment, status):
        made = condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{who} is progressing.", now)
        if current is not None:
            if current["status"] == "True":
                made["lastTransitionTime"] = current.get("lastTransitionTime")
            drop_condition(status, PROGRESSING)
        set_condition(status, made)
    elif _has_timed_out(deployment, status, now):
        text = f"{who} has timed out progressing."
        set_condition(status, condition(PROGRESSING, "False", TIMED_OUT, text, now))


def seconds_to_deadline(deployment: Object, status: Object, now: Instant) -> float | None:
    """When to look whether progress has come to an end; None if there is no need to."""
    current = condition_of(deployment, PROGRESSING)
    if not has_deadline(deployment) or current is None:
        return None
    if is_complete(deployment, status) or current.get("reason") == TIMED_OUT:
        return None
    left = deployment["spec"]["progressDeadlineSeconds"] - now.since(parse_time(current["lastUpdateTime"]))
    return max(1.0, float(left) + 1.0)
