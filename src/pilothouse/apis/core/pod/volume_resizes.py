"""Resizing volumes in memory: where its feature is on, their size limit changes in place and nothing else does."""

from __future__ import annotations

from pilothouse.apis.core.pod.comparison import same
from pilothouse.apis.core.pod.validation import SPEC
from pilothouse.apis.core.resource_names import amount
from pilothouse.machinery.field_errors import FieldError, Path, forbidden
from pilothouse.machinery.objects import Object


def validate_volume_resizes(volumes: list[Object], old: list[Object], errs: list[FieldError]) -> None:
    """Errors of a pod's volumes that replace these in a resize."""
    path = SPEC.child("volumes")
    if len(volumes) != len(old):
        errs.append(forbidden(path, "volumes may not be added or removed on resize"))
        return
    for position, (volume, before) in enumerate(zip(volumes, old, strict=True)):
        where = path.index(position)
        if volume.get("name") != before.get("name"):
            errs.append(forbidden(where.child("name"), "volumes may not be renamed or reordered on resize"))
            continue
        directory, previous = volume.get("emptyDir"), before.get("emptyDir")
        if directory is None or previous is None:
            if not same(volume, before):
                errs.append(forbidden(where, _ONLY))
        elif not same({**volume, "emptyDir": _with_limit(directory, previous)}, before):
            errs.append(forbidden(where, _ONLY))
        else:
            _validate_limit(directory, previous, where.child("emptyDir", "sizeLimit"), errs)


_ONLY = "only sizeLimit of memory-backed emptyDir volumes is mutable on resize"


def _with_limit(directory: Object, other: Object) -> Object:
    kept = {key: value for key, value in directory.items() if key != "sizeLimit"}
    return {**kept, "sizeLimit": other["sizeLimit"]} if "sizeLimit" in other else kept


def _validate_limit(directory: Object, old: Object, path: Path, errs: list[FieldError]) -> None:
    limit, before = amount(directory.get("sizeLimit", "0")), amount(old.get("sizeLimit", "0"))
    if limit.is_zero != before.is_zero:
        errs.append(forbidden(path, "adding or removing sizeLimit on an existing volume is not allowed"))
    elif limit.compare(before) and directory.get("medium") != "Memory":
        errs.append(forbidden(path, "sizeLimit is only mutable for memory-backed emptyDir volumes"))
