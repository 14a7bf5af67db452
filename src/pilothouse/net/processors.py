"""How many processors this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """Those that it is not kept from by its affinity, where the system knows such a thing."""
    affinity = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() or 1 if affinity is None else len(affinity(0))
