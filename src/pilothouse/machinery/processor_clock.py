"""The processor time of another thread: what it has done, however busy the machine is with other things."""

from __future__ import annotations

import time
from collections.abc import Callable


def processor_clock(ident: int) -> Callable[[], float]:
    """Seconds that the thread has computed, where the system can tell; else the time."""
    find = getattr(time, "pthread_getcpuclockid", None)
    if find is None:
        return time.monotonic
    identifier: int = find(ident)
    return lambda: time.clock_gettime(identifier)
