"""Reading a CustomResourceDefinition: its versions, conditions and names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pilothouse.machinery import kube_versions
from pilothouse.machinery.objects import Object

ESTABLISHED: Final = "Established"
NAMES_ACCEPTED: Final = "NamesAccepted"
TERMINATING: Final = "Terminating"
API_APPROVED: Final = "KubernetesAPIApprovalPolicyConformant"
NON_STRUCTURAL: Final = "NonStructuralSchema"
CLEANUP_FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
APPROVED_ANNOTATION: Final = "api-approved.kubernetes.io"


def condition(crd: Object, type: str) -> Object | None:
    """A condition of the definition's status."""
    for each in (crd.get("status") or {}).get("conditions") or ():
        if each.get("type") == type:
            found: Object = each
            return found
    return None


def is_true(crd: Object, type: str) -> bool:
    """Whether a condition is there and true."""
    found = condition(crd, type)
    return found is not None and found.get("status") == "True"


def set_condition(crd: Object, new: Object, now: str) -> None:
    """Put a condition into the status; its time changes with its status only."""
    conditions = crd.setdefault("status", {}).get("conditions") or []
    crd["status"]["conditions"] = conditions
    for each in conditions:
        if each["type"] == new["type"]:
            if each.get("status") != new["status"]:
                each["lastTransitionTime"] = new.get("lastTransitionTime") or now
            each["status"], each["reason"], each["message"] = new["status"], new["reason"], new["message"]
            return
    made = {"type": new["type"], "status": new["status"], "lastTransitionTime": new.get("lastTransitionTime") or now}
    conditions.append({**made, "reason": new["reason"], "message": new["message"]})


def remove_condition(crd: Object, type: str) -> None:
    """Take a condition out of the status."""
    status = crd.get("status") or {}
    if status.get("conditions"):
        status["conditions"] = [each for each in status["conditions"] if each.get("type") != type]


def versions(crd: Object) -> list[Object]:
    """All versions as the definition lists them."""
    return crd["spec"].get("versions") or []


def served_versions(crd: Object) -> Iterator[Object]:
    """Those that clients may use."""
    return (version for version in versions(crd) if version.get("served"))


def storage_version(crd: Object) -> str:
    """The version objects are stored in."""
    return next((version["name"] for version in versions(crd) if version.get("storage")), "")


def is_terminating(crd: Object) -> bool:
    """Whether the definition is on its way out."""
    return bool(crd["metadata"].get("deletionTimestamp")) or is_true(crd, TERMINATING)


def deprecation_of(crd: Object, version: Object) -> str:
    """The warning that requests to a version get, empty where it is not deprecated."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    spec = crd["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    better = [
        other["name"]
        for other in served_versions(crd)
        if not other.get("deprecated") and kube_versions.compare(version["name"], other["name"]) < 0
    ]
    message = f"{group}/{version['name']} {kind} is deprecated"
    if better:
        message += f"; use {group}/{min(better, key=kube_versions.preferred_first)} {kind}"
    return message
