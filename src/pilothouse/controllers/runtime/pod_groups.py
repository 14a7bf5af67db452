"""Pods of a group, and claims that they share: such a claim belongs to the group, and is reserved for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pilothouse.controllers.runtime.owners import controller_of, is_controlled_by
from pilothouse.machinery.objects import Object

GROUP: Final = "scheduling.k8s.io"
VERSION: Final = "v1beta1"
RESOURCE: Final = "podgroups"
API_VERSION: Final = f"{GROUP}/{VERSION}"
GetGroup = Callable[[str, str], Object | None]


class GroupMissing(Exception):
    """The group of a pod is not known; the message says which."""


def group_name(pod: Object) -> str:
    """The group that a pod is in; empty for one that is in none."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def group_of(pod: Object, get: GetGroup) -> Object | None:
    """The group that a pod is in. Raises GroupMissing."""
    name = group_name(pod)
    if not name:
        return None
    found = get(pod["metadata"]["namespace"], name)
    if found is None:
        raise GroupMissing(f'podgroup.scheduling.k8s.io "{name}" not found')
    return found


def is_shared(pod_claim: Object, group: Object | None) -> bool:
    """Whether an entry of a pod means the claim of its group: the group has an entry that says the same."""
    fields = ("name", "resourceClaimName", "resourceClaimTemplateName")
    entries = () if group is None else group["spec"].get("resourceClaims") or ()
    return any(all(each.get(field) == pod_claim.get(field) for field in fields) for each in entries)


def consumer_of(pod: Object, pod_claim: Object, group: Object | None) -> dict[str, Any]:
    """Whom a claim is reserved for when the pod uses it."""
    if group is not None and is_shared(pod_claim, group):
        metadata = group["metadata"]
        return {"apiGroup": GROUP, "resource": RESOURCE, "name": metadata["name"], "uid": metadata["uid"]}
    metadata = pod["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}


def is_reserved_for(claim: Object, pod: Object) -> bool:
    """Whether a claim is kept for the pod, or for its group, whose uid the pod does not know."""
    uid, group = pod["metadata"]["uid"], group_name(pod)
    return any(
        each["uid"] == uid or (group and is_group(each) and each["name"] == group)
        for each in (claim.get("status") or {}).get("reservedFor") or ()
    )


def is_group(consumer: Object) -> bool:
    """Whether a consumer of a claim is a group."""
    return (consumer.get("apiGroup") or "", consumer["resource"]) == (GROUP, RESOURCE)


def is_made_for(claim: Object, pod: Object) -> bool:
    """Whether a claim was made for the pod, or for its group."""
    if is_controlled_by(claim, pod):
        return True
    owner, group = controller_of(claim), group_name(pod)
    return bool(
        group
        and owner is not None
        and (owner["kind"], owner["name"]) == ("PodGroup", group)
        and owner["apiVersion"].startswith(f"{GROUP}/")
    )
