"""What each event loop has one of, as ``threading.local`` is for threads.

It is made when it is first asked for, and found again at the cost of a comparison: a thread runs one loop for long.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class _Here(threading.local, Generic[T]):
    """What belongs to the loop that a thread ran last."""

    found: tuple[asyncio.AbstractEventLoop, T] | None = None


class LoopLocal(Generic[T]):
    """``make`` gives what a loop has one of."""

    def __init__(self, make: Callable[[asyncio.AbstractEventLoop], T]) -> None:
        self._make = make
        self._here = _Here[T]()

    def of(self, loop: asyncio.AbstractEventLoop) -> T:
        """That of a loop, which is the one that this thread runs."""
        found = self._here.found
        if found is None or found[0] is not loop:
            found = self._here.found = loop, self._make(loop)
        return found[1]
