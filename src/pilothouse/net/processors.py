"""How many processors this process may use, and whether it is left alone on them.

A container with a CPU limit sees all processors of its machine, and may run on each of them, but only so long in all:
who then works on more of them than the limit amounts to stands still for the rest of each period. As Go does, the
limit is counted like so many processors, be it set by a container's runtime or by systemd (``CPUQuota``).
"""

from __future__ import annotations

import math
import os
import resource
from pathlib import Path
from typing import Final

_OWN: Final = Path("/proc/self/cgroup")
_GROUPS: Final = Path("/sys/fs/cgroup")


def processors() -> int:
    """Those that it is kept from neither by its affinity nor by a limit, where the system knows such things."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = os.cpu_count() or 1 if affinity is None else len(affinity(0))
    return max(1, int(min(count, _LIMIT)))


def interruptions() -> int:
    """How often the processor was taken from this thread while it had something to do; 0 where nobody counts."""
    who = getattr(resource, "RUSAGE_THREAD", None)
    return 0 if who is None else resource.getrusage(who).ru_nivcsw


def limit(own: Path, groups: Path) -> float:
    """The least that the process's control group, or one that it is part of, may use."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return math.inf
    limits = [math.inf]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or "cpu" in controllers.split(","):
            root = groups / "cpu" if controllers else groups
            group = root / path.lstrip("/")
            limits += map(_limit_of, (folder for folder in (group, *group.parents) if folder.is_relative_to(root)))
    return min(limits)


def _limit_of(group: Path) -> float:
    """What one control group may use, of version 2 or 1."""
    try:
        used, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            used, period = ((group / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return math.inf
    try:
        return int(used) / int(period) if int(used) > 0 else math.inf
    except (ValueError, ZeroDivisionError):  # "max", for one
        return math.inf


_LIMIT: Final = limit(_OWN, _GROUPS)
"""Read when this is imported: on the event loop no files are."""
