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
    wanted = _Wanted(claim)
    free = []
    for volume in volumes:
        if volume["spec"].get("claimRef") is not None:
            if is_reserved_for(volume, claim) and wanted.fits(volume):
                return volume
        elif not waits_for_pod and wanted.is_free(volume) and wanted.fits(volume):
            free.append(volume)
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


class _Wanted:
    """What a claim asks for, read once for all the volumes that it is held against, what is cheap to tell first."""

    def __init__(self, claim: Object) -> None:
        spec = claim["spec"]
        self._class, self._mode, self._attributes = class_of(claim), _mode(claim), _attributes(claim)
        self._modes, self._size = frozenset(spec.get("accessModes") or ()), request_of(claim)
        selector = spec.get("selector")
        self._selector = None if selector is None else labels.from_object(selector)

    def is_free(self, volume: Object) -> bool:
        if phase_of(volume) != "Available" or class_of(volume) != self._class:
            return False
        return self._selector is None or self._selector.matches(volume["metadata"].get("labels") or {})

    def fits(self, volume: Object) -> bool:
        if volume["metadata"].get("deletionTimestamp") or _mode(volume) != self._mode:
            return False
        if not self._modes.issubset(volume["spec"].get("accessModes") or ()):
            return False
        return _attributes(volume) == self._attributes and capacity_of(volume) >= self._size


def _has_access(volume: Object, claim: Object) -> bool:
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def _mode(obj: Object) -> str:
    return obj["spec"].get("volumeMode") or "Filesystem"


def _attributes(obj: Object) -> str:
    return obj["spec"].get("volumeAttributesClassName") or ""
