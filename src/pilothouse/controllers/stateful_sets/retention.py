"""Who a claim of a stateful set belongs to, and so when it is deleted.

    whenDeleted   whenScaled    the claim's owner
    Retain        Retain        nobody
    Delete        Retain        the set
    Retain        Delete        the pod, once it is scaled away
    Delete        Delete        the set; the pod, once it is scaled away

What others have put there as the controlling owner is respected.
"""

from __future__ import annotations

from typing import Any

from pilothouse.controllers.runtime.owners import controller_reference
from pilothouse.controllers.stateful_sets.identity import is_wanted
from pilothouse.machinery.objects import Object

Reference = dict[str, Any]


def policy_of(stateful_set: Object) -> tuple[str, str]:
    """When claims go: with the set, and with a pod that is scaled away."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") or "Retain", policy.get("whenScaled") or "Retain"


def _references(claim: Object) -> list[Reference]:
    return list(claim["metadata"].get("ownerReferences") or ())


def _names(reference: Reference, owner: Object, kind: str, api_version: str) -> bool:
    """Whether a reference is to something of this name, though perhaps an earlier one."""
    wanted = (kind, api_version, owner["metadata"]["name"])
    return (reference["kind"], reference["apiVersion"], reference["name"]) == wanted


def _names_set(reference: Reference, stateful_set: Object) -> bool:
    return _names(reference, stateful_set, "StatefulSet", "apps/v1")


def _names_pod(reference: Reference, pod: Object) -> bool:
    return _names(reference, pod, "Pod", "v1")


def _is(reference: Reference, owner: Object) -> bool:
    return bool(reference["uid"] == owner["metadata"].get("uid"))


def is_owned_by_earlier_pod(claim: Object, pod: Object) -> bool:
    """Whether the claim goes away with an earlier pod of the same name."""
    first = next((each for each in _references(claim) if _names_pod(each, pod)), None)
    return first is not None and not _is(first, pod)


def _is_owned_by_earlier_set(claim: Object, stateful_set: Object) -> bool:
    first = next((each for each in _references(claim) if _names_set(each, stateful_set)), None)
    return first is not None and not _is(first, stateful_set)


def has_other_controller(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Whether somebody else controls the claim, so that the policy does not hold for it."""
    if policy_of(stateful_set) == ("Retain", "Retain"):
        return False
    for each in _references(claim):
        if _names_set(each, stateful_set):
            if not _is(each, stateful_set):
                return True
        elif _names_pod(each, pod):
            if not _is(each, pod):
                return True
        elif each.get("controller"):
            return True
    return False


def wanted_owners(claim: Object, stateful_set: Object, pod: Object) -> list[Reference]:
    """The owners that the claim should have."""
    others = [each for each in _references(claim) if not _names_set(each, stateful_set) and not _names_pod(each, pod)]
    if has_other_controller(claim, stateful_set, pod):
        return others
    when_deleted, when_scaled = policy_of(stateful_set)
    if when_scaled == "Delete" and not is_wanted(stateful_set, pod):
        return [*others, controller_reference(pod, "Pod", "v1")]
    if when_deleted == "Delete":
        return [*others, controller_reference(stateful_set, "StatefulSet", "apps/v1")]
    return others


def is_owned_rightly(claim: Object, stateful_set: Object, pod: Object) -> bool:
    """Whether the claim has the owners that it should have, or is not ours to change."""
    if _is_owned_by_earlier_set(claim, stateful_set) or is_owned_by_earlier_pod(claim, pod):
        return True
    ours = [each for each in _references(claim) if _is(each, stateful_set) or _is(each, pod)]
    if has_other_controller(claim, stateful_set, pod):
        return not ours
    wanted = {
        each["uid"] for each in wanted_owners(claim, stateful_set, pod) if _is(each, stateful_set) or _is(each, pod)
    }
    return {each["uid"] for each in ours} == wanted and all(each.get("controller") for each in ours)
