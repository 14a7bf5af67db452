"""What other threads are at, found without their going on meanwhile.

Whoever follows ``f_back`` through the frames of a thread in a loop of Python may lose the interpreter's lock between
two of them. The thread goes on, a coroutine among its frames stops where it waits, and CPython 3.11 then follows a
pointer to memory that is something else by now: the process ends with a segmentation fault. So the frames are gathered
within one call into C, in which the lock is not given away.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from itertools import accumulate, chain, repeat
from operator import call, getitem
from types import FrameType
from typing import Any, Final

MOST_FRAMES: Final = 128
_ATTRIBUTE_OF: Any = getattr


def frames_of(thread: int) -> list[FrameType]:
    """The frames of a thread, innermost first; none if it has ended."""
    frames: list[Any] = []
    newest = map(getitem, map(call, (sys._current_frames,)), (thread,))
    walk = accumulate(chain(newest, repeat("f_back", MOST_FRAMES - 1)), _ATTRIBUTE_OF)
    was_collecting = gc.isenabled()
    gc.disable()  # what is called when cycles are looked for is Python
    try:
        with suppress(KeyError, AttributeError):  # no such thread; no frame behind the outermost
            frames.extend(walk)
    finally:
        if was_collecting:
            gc.enable()
    return [frame for frame in frames if frame is not None]
