"""Choosing among several defaults: the newest wins, of equally new ones the first by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def newest_name(objects: Iterable[dict[str, Any]]) -> str:
    """The name of the newest object; empty when there is none."""
    found = [(each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"]) for each in objects]
    if not found:
        return ""
    newest = max(created for created, _ in found)
    return str(min(name for created, name in found if created == newest))
