"""How the C library gives memory back.

glibc raises the size from which an allocation has pages of its own each time such a one is freed, up to 32 MB; the
buffers of large bodies and lists then come from the heap, and stay there between smaller things long after they are
freed. One body of 2 MB left 75 MB behind, a second one 35 MB more; with fixed sizes 25 MB, and nothing more.

What is freed in small pieces (a table or a protobuf list of all pods) stays as well, unless glibc is told to look for
pages that have nothing on them any more. It is, whenever much has been freed: that takes 10 ms for 90 MB.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
from collections.abc import Callable
from typing import ClassVar, Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_SETTINGS: Final = (
    (_MMAP_THRESHOLD, 1 << 20),  # pages of its own, given back at once
    (_TRIM_THRESHOLD, 8 << 20),  # what may stay free at the end of the heap, so that it does not grow again at once
    (_ARENA_MAX, 2),  # threads take turns anyway, and each heap of theirs would keep what was free in it
)

_WORTHWHILE: Final = 16 << 20
"""So many bytes must have been freed for giving them back to be worth it."""


def return_large_memory() -> None:
    """Let what large requests needed go back to the system; does nothing where the C library knows no such settings."""
    if not sys.platform.startswith("linux"):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in _SETTINGS:
            set_option(option, value)


class FreeMemory:
    """Gives freed memory back to the system when there is more of it than when it last did."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
        self._trim, self._ask = getattr(library, "malloc_trim", None), getattr(library, "mallinfo2", None)
        if self._ask is not None:
            self._ask.restype = _MallocInfo
        self._free = 0

    async def poll(self) -> None:
        """Look once, in a thread."""
        if self._trim is not None and self._ask is not None:
            await asyncio.to_thread(self._look, self._trim, self._ask)

    def _look(self, trim: Callable[[int], int], ask: Callable[[], _MallocInfo]) -> None:
        free = ask().free
        if free >= self._free + _WORTHWHILE:
            trim(0)
            self._free = free  # what was given back still counts, until it is used again
        self._free = min(self._free, free)


class _MallocInfo(ctypes.Structure):
    """What glibc knows of its heaps; only one of the figures matters here."""

    _fields_: ClassVar = [
        ("others", ctypes.c_size_t * 8),
        ("free", ctypes.c_size_t),
        ("last", ctypes.c_size_t),
    ]
