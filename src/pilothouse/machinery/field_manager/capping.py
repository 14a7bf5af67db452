"""Keeping the number of update entries bounded.

Beyond ten, the oldest are thrown together into one entry per version, ``ancient-changes``. The first of a version gives
its place to that entry only when a second one comes along.
"""

from __future__ import annotations

from typing import Final

from pilothouse.machinery.field_manager.entries import UPDATE, Managed, Manager
from pilothouse.machinery.structured.field_sets import union
from pilothouse.machinery.structured.ownership import Owned

MAX_UPDATE_MANAGERS: Final = 10
ANCIENT: Final = "ancient-changes"


def cap_updaters(managed: Managed, most: int = MAX_UPDATE_MANAGERS) -> None:
    """Merge the oldest updaters until no more than ``most`` are left, as far as versions allow."""
    updaters = [manager for manager, owned in managed.managers.items() if not owned.applied]
    if len(updaters) <= most:
        return
    updaters.sort(key=lambda manager: (managed.times.get(manager) or "", manager.sort_text()))
    count = len(updaters)
    first_of: dict[str, Manager] = {}
    for manager in updaters:
        if count <= most:
            break
        owned = managed.managers[manager]
        if owned.version not in first_of:
            first_of[owned.version] = manager
            continue
        bucket = Manager(ANCIENT, UPDATE, owned.version, "")
        if bucket not in managed.managers:
            managed.managers[bucket] = managed.managers.pop(first_of[owned.version])
        together = union(owned.fields, managed.managers[bucket].fields)
        managed.managers[bucket] = Owned(together, owned.version, owned.applied)
        managed.managers.pop(manager, None)
        managed.times[bucket] = managed.times.get(manager)
        count -= 1
