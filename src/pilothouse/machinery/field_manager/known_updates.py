"""What updates made of who owns what, so that the same change to objects alike is worked out once.

Who writes again and again (a controller its status, a kubelet its pods) changes the same fields each time, of objects
whose fields have the same owners. What then becomes of the owners follows from the fields that changed, whose they
were, and who writes; no value of the object has a part in it. All of that written as JSON is what a result is found by.

Only what comes a second time is remembered, since most updates never do, and nothing long. Sets are shared between the
objects that they were found for: nobody changes a set that was made.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import orjson

from pilothouse.machinery import large_json
from pilothouse.machinery.field_manager.entries import APPLY, Manager
from pilothouse.machinery.structured.comparison import Comparison
from pilothouse.machinery.structured.field_sets import FieldSet
from pilothouse.machinery.structured.ownership import Managers, Owned

_MOST: Final = 64
_LARGEST: Final = 8 * 1024
_MOST_SEEN: Final = 512


class Change(NamedTuple):
    """All that decides what an update makes of the owners."""

    sets: bytes
    managers: tuple[Manager, ...]
    writer: Manager


class _Result(NamedTuple):
    left: tuple[tuple[Manager, FieldSet | None], ...]
    """The managers that are left, and their fields where these are others than before."""
    wrote: bool


class KnownUpdates:
    """The latest results of one field manager that were wanted more than once."""

    __slots__ = ("_known", "_seen")

    def __init__(self) -> None:
        self._known: dict[Change, _Result] = {}
        self._seen: set[int] = set()

    @staticmethod
    def change(comparison: Comparison, managers: Managers, writer: Manager, version: str) -> Change | None:
        """What a result may be known by; nothing where that takes a look at the object in another version."""
        sets = [comparison.removed, comparison.modified, comparison.added]
        for owned in managers.values():
            if owned.version != version:
                return None
            sets.append(owned.fields)
        try:
            written = large_json.dumps_short(sets, _LARGEST)
        except orjson.JSONEncodeError:
            return None
        return None if written is None else Change(written, tuple(managers), writer)

    def recall(self, change: Change, managers: Managers, version: str) -> tuple[Managers, bool] | None:
        """Who owns what after the change, and whether the writer owns something by it; None if that is not known."""
        result = self._known.get(change)
        if result is None:
            return None
        left = {
            manager: managers[manager] if fields is None else Owned(fields, version, manager.operation == APPLY)
            for manager, fields in result.left
        }
        return left, result.wrote

    def note(self, change: Change, managers: Managers, left: Managers, wrote: bool) -> None:
        """Remember what came of a change, if it has come before."""
        seen, digest = self._seen, hash(change)
        if digest not in seen:
            if len(seen) >= _MOST_SEEN:
                seen.clear()
            seen.add(digest)
            return
        if len(self._known) >= _MOST:
            self._known.clear()  # long updates are made in threads: in one step
        kept = ((manager, None if owned is managers.get(manager) else owned.fields) for manager, owned in left.items())
        self._known[change] = _Result(tuple(kept), wrote)
