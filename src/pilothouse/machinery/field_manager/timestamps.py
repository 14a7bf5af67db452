"""A write that changes nothing but the times of its managers changes nothing: the old times stay."""

from __future__ import annotations

from typing import Any


def keep_times(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """The new object, with the old one's times if they are all that differs."""
    new_entries = new["metadata"].get("managedFields") or []
    old_entries = old["metadata"].get("managedFields") or []
    if not new_entries or len(new_entries) != len(old_entries) or new_entries == old_entries:
        return new
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return new
    if any(_untimed(a) != _untimed(b) for a, b in zip(new_entries, old_entries, strict=True)):
        return new
    same = {**new, "metadata": {**new["metadata"], "managedFields": old_entries}}
    return same if same == old else new


def _untimed(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "time"}
