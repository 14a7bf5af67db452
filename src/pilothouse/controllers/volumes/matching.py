"""Which volume does for a claim."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.controllers.volumes.facts import capacity_of, class_of, is_reserved_for, phase_of, request_of
from pilothouse.machinery import labels
from pilothouse.machinery.objects import Object


def find_volume(claim: Object, volumes: Iterable[Object], waits_for_pod: bool) -> Object | None:
    """The volume that a claim is to have: one reserved for it, or the smallest with the fewest modes that will do.

    A claim that waits for its first consumer is left to the scheduler unless a volume is reserved for it.
    """
    allowed = [volume for volume in volumes if _is_possible(volume, claim)]
    for volume in allowed:
        if is_reserved_for(volume, claim):
            return volume
    if waits_for_pod:
        return None
    free = [volume for volume in allowed if _is_free(volume, claim)]
    return min(
        free,
        key=lambda volume: (len(volume["spec"].get("accessModes") or ()), capacity_of(volume).as_decimal()),
        default=None,
    )


def modes_differ(volume: Object, claim: Object) -> bool:
    """Whether one is a block device and the other a file system."""
    return _mode(volume) != _mode(claim)


def mismatch(volume: Object, claim: Object) -> str:
    """Why a volume that a claim asks for by name will not do; empty if it will."""
    if volume["metadata"].get("deletionTimestamp"):
        return f'the volume is marked for deletion "{volume["metadata"]["name"]}"'
    if capacity_of(volume).value() < request_of(claim).value():
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if _attributes(volume) != _attributes(claim):
        return "volumeAttributesClassName does not match"
    if modes_differ(volume, claim):
        return "incompatible volumeMode"
    return "" if _has_access(volume, claim) else "incompatible accessMode"


def _is_possible(volume: Object, claim: Object) -> bool:
    if volume["spec"].get("claimRef") is not None and not is_reserved_for(volume, claim):
        return False
    if volume["metadata"].get("deletionTimestamp") or capacity_of(volume) < request_of(claim):
        return False
    return _has_access(volume, claim) and not modes_differ(volume, claim) and _attributes(volume) == _attributes(claim)


def _is_free(volume: Object, claim: Object) -> bool:
    if phase_of(volume) != "Available" or class_of(volume) != class_of(claim):
        return False
    selector = claim["spec"].get("selector")
    return selector is None or labels.from_object(selector).matches(volume["metadata"].get("labels") or {})


def _has_access(volume: Object, claim: Object) -> bool:
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def _mode(obj: Object) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _attributes(obj: Object) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""
