"""Fields of the scale subresource.

Scale has one field to own, ``spec.replicas``, and it is a field of the main resource under another path. Entries are
translated before a write through scale, and back afterwards. Paths are given per version of the main resource; a
version with None is known but has no scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pilothouse.machinery.field_manager.entries import Entry, Managed, read_entries, write_entries
from pilothouse.machinery.structured.field_sets import difference, from_paths, has
from pilothouse.machinery.structured.ownership import Owned
from pilothouse.machinery.structured.paths import Path

SCALE_VERSION: Final = "autoscaling/v1"
REPLICAS: Final[Path] = ("f:spec", "f:replicas")

ReplicasPaths = Mapping[str, Path | None]


def to_scale(entries: list[Entry] | None, paths: ReplicasPaths) -> list[Entry]:
    """The main resource's entries that own replicas, as scale has them."""
    parent = read_entries(entries)
    out = Managed()
    for manager, owned in parent.managers.items():
        path = paths.get(owned.version)
        if path is not None and has(owned.fields, path):
            out.managers[manager] = Owned(from_paths(REPLICAS), SCALE_VERSION, owned.applied)
            out.times[manager] = parent.times[manager]
    return write_entries(out)


def to_parent(
    entries: list[Entry] | None, scale_entries: list[Entry] | None, version: str, paths: ReplicasPaths
) -> list[Entry]:
    """The main resource's entries after a write through scale, in the version that was scaled."""
    parent, scale = read_entries(entries), read_entries(scale_entries)
    out = Managed(times=parent.times)
    new = dict(scale.managers)
    for manager, owned in parent.managers.items():
        if owned.version not in paths:
            continue
        path = paths[owned.version]
        fields = owned.fields
        if path is not None and has(fields, path):
            if manager not in new:
                fields = difference(fields, from_paths(path))
            else:
                del new[manager]
        if fields:
            out.managers[manager] = Owned(fields, owned.version, owned.applied)
    path = paths.get(version)
    for manager, owned in new.items():
        if has(owned.fields, REPLICAS):
            # Who takes replicas through scale has no time of its own in the main resource.
            out.managers[manager] = Owned(from_paths(path or ()), version, owned.applied)
    return write_entries(out)
