"""Waiting until a cache, or a live log, has reached a revision."""

from __future__ import annotations

import asyncio
import heapq
import itertools

from pilothouse.storage.backends.contract import FutureRevision, StorageError


class Progress:
    """How far something is, and who waits for more."""

    def __init__(self) -> None:
        self.revision = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()

    def advance(self, revision: int) -> None:
        """Reach a revision and release those who waited for it."""
        if revision > self.revision:
            self.revision = revision
        waiting = self._waiting
        while waiting and waiting[0][0] <= self.revision:
            future = heapq.heappop(waiting)[2]
            if not future.done():
                future.set_result(None)

    def restart(self, revision: int) -> None:
        """Begin anew at a revision, be it an older one."""
        self.revision = 0
        self.advance(revision)

    def fail(self, error: StorageError) -> None:
        """Tell everybody who waits that it will not happen."""
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(error)

    async def reach(self, revision: int, seconds: float | None = None) -> None:
        """Wait for a revision. Raises FutureRevision when it has not come in time."""
        if revision <= self.revision:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._waiting, (revision, next(self._numbers), future))
        # A timer of its own instead of asyncio.timeout: a request that has not waited yet runs outside any task.
        timer = None if seconds is None else loop.call_later(seconds, _expire, future)
        try:
            await future
        except TimeoutError:
            raise FutureRevision(revision, self.revision) from None
        finally:
            if timer is not None:
                timer.cancel()


def _expire(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())
