"""When a device was tainted."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery import times


def stamp_taints(taints: Any) -> None:
    """Taints that do not say since when they are there are from now."""
    for taint in taints or ():
        if not taint.get("timeAdded"):
            taint["timeAdded"] = times.now()
