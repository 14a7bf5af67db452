"""Watches from any retained revision, made once for every backend out of `history` and `follow`.

The log itself is the buffer: a watch reads it page by page at the speed of its consumer, and the live feed only
tells it that there is more to read. So a slow consumer costs no memory, and learns with Compacted that it was too
slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from pilothouse.storage.backends.contract import Backend, Event, StorageError


class Progress:
    """A follower that only knows how far the store has come."""

    def __init__(self) -> None:
        self.revision = 0
        self._error: StorageError | None = None
        self._news = asyncio.Event()

    def receive(self, events: Sequence[Event], revision: int) -> None:
        self.revision = revision
        self._news.set()

    def fail(self, error: StorageError) -> None:
        self._error = error
        self._news.set()

    async def beyond(self, revision: int) -> None:
        """Wait until the store has passed a revision. Raises what broke the feed."""
        while self.revision <= revision:
            if self._error is not None:
                raise self._error
            self._news.clear()
            await self._news.wait()


async def watch_log(backend: Backend, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
    """Yield batches of events below a prefix after a revision, for ever."""
    progress = Progress()
    feed = backend.follow(progress)
    try:
        progress.revision = max(progress.revision, feed.revision)
        while True:
            await progress.beyond(after)
            page = await backend.history(prefix, after)
            after = page.revision
            if page.events:
                yield page.events
    finally:
        feed.close()
