"""Watches from a past revision, made once for every backend out of `history` and `follow`.

A watch subscribes to the live feed first and then reads the log up to the point where the feed took over, so that nothing
falls between the two. While it reads the past it is slowed down by its consumer, and live events wait in memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

from pilothouse.storage.backends.contract import Backend, Event, StorageError


class LiveQueue:
    """A follower that keeps the events below one prefix until somebody takes them."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._batches: deque[list[Event]] = deque()
        self._arrival = asyncio.Event()
        self._error: StorageError | None = None

    def receive(self, events: Sequence[Event], revision: int) -> None:
        batch = [event for event in events if event.key.startswith(self._prefix)]
        if batch:
            self._batches.append(batch)
            self._arrival.set()

    def fail(self, error: StorageError) -> None:
        self._error = error
        self._arrival.set()

    async def take(self) -> list[Event]:
        """Wait for the next batch; raises what broke the feed once all before it is taken."""
        while not self._batches:
            if self._error is not None:
                raise self._error
            self._arrival.clear()
            await self._arrival.wait()
        return self._batches.popleft()


async def watch_log(backend: Backend, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
    """Yield batches of events below a prefix after a revision, for ever."""
    queue = LiveQueue(prefix)
    feed = backend.follow(queue)
    try:
        while after < feed.revision:
            past = await backend.history(prefix, after)
            batch = [event for event in past.events if event.revision <= feed.revision]
            after = min(past.revision, feed.revision)
            if batch:
                yield batch
        while True:
            batch = [event for event in await queue.take() if event.revision > after]
            if batch:
                yield batch
    finally:
        feed.close()
