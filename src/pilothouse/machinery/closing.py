"""Closing what was opened: everything, the newest first, whatever fails on the way.

closing = Closing("process")
await backend.open()
closing.add("the backend", backend.close)      right after the opening, so that a start that fails closes it too
...
await closing.close()
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

logger = logging.getLogger(__name__)
Close = Callable[[], Awaitable[None]]


class Closing:
    """A stack of what must be closed. A failure is logged, and the rest is closed all the same."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._stack = AsyncExitStack()

    def add(self, what: str, close: Close) -> None:
        """Have this closed before everything that was added earlier."""
        self._stack.push_async_callback(self._close_one, what, close)

    async def close(self) -> None:
        """Close everything. Closing twice does nothing; being cancelled ends the waiting for one thing at most."""
        await self._stack.aclose()

    async def _close_one(self, what: str, close: Close) -> None:
        try:
            await close()
        except Exception:
            logger.exception("%s: closing %s failed", self._owner, what)
