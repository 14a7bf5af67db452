"""How many processors this process may use, and whether it is left alone on them."""

from __future__ import annotations

import os
import resource


def processors() -> int:
    """Those that it is not kept from by its affinity, where the system knows such a thing."""
    affinity = getattr(os, "sched_getaffinity", None)
    return os.cpu_count() or 1 if affinity is None else len(affinity(0))


def interruptions() -> int:
    """How often this thread was taken the processor while it had something to do; 0 where nobody counts."""
    who = getattr(resource, "RUSAGE_THREAD", None)
    return 0 if who is None else resource.getrusage(who).ru_nivcsw
