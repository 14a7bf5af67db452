"""How the C library gives memory back.

glibc raises the size from which an allocation has pages of its own each time such a one is freed, up to 32 MB; the
buffers of large bodies and lists then come from the heap, and stay there between smaller things long after they are
freed. One body of 2 MB left 75 MB behind, a second one 35 MB more; with fixed sizes 25 MB, and nothing more.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_SETTINGS: Final = (
    (_MMAP_THRESHOLD, 1 << 20),  # pages of its own, given back at once
    (_TRIM_THRESHOLD, 8 << 20),  # what may stay free at the end of the heap, so that it does not grow again at once
    (_ARENA_MAX, 2),  # threads take turns anyway, and each heap of theirs would keep what was free in it
)


def return_large_memory() -> None:
    """Let what large requests needed go back to the system; does nothing where the C library knows no such settings."""
    if not sys.platform.startswith("linux"):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in _SETTINGS:
            set_option(option, value)
