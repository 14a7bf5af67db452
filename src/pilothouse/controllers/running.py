"""Work that goes on for as long as the server runs: reconcilers fed by a queue, and rounds that come by the clock.

Whatever fails is logged and tried again; nothing here ends by itself, and ``stop`` returns when all of it has ended.
Work that is stopped in the middle is cancelled: reconciling starts from what is stored, so half of it does no harm.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from pilothouse.controllers.work_queue import Closed, WorkQueue

logger = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
Sleep = Callable[[float], Awaitable[None]]


class Running(Protocol):
    """Something that has been started and can be stopped."""

    async def stop(self) -> None: ...


class Controller(Generic[K]):
    """Takes keys from a queue and reconciles each; a key that fails comes back after its back-off."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[None]],
        queue: WorkQueue[K] | None = None,
        workers: int = 1,
        *,
        wait_for: asyncio.Event | None = None,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = WorkQueue() if queue is None else queue
        self._reconcile = reconcile
        self._workers = workers
        self._wait_for = wait_for
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to work, when the awaited event has come."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._work(), name=self.name) for _ in range(self._workers)]

    async def stop(self) -> None:
        """Stop working."""
        self.queue.close()
        tasks, self._tasks = self._tasks, []
        await end_tasks(tasks)

    async def _work(self) -> None:
        if self._wait_for is not None:
            await self._wait_for.wait()
        while True:
            try:
                key = await self.queue.get()
            except Closed:
                return
            try:
                await self.reconcile(key)
            finally:
                self.queue.done(key)

    async def reconcile(self, key: K) -> None:
        """Reconcile one key now; failures are logged and put off."""
        try:
            await self._reconcile(key)
        except Exception as error:
            seconds = self.queue.retry(key)
            logger.warning("%s: %s failed, again in %.3f s: %s", self.name, key, seconds, error)
        else:
            self.queue.succeeded(key)


class Periodic:
    """Does one thing again and again, ``seconds`` apart and up to ``jitter`` of that more."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        seconds: float,
        *,
        jitter: float = 0.04,
        wait_for: asyncio.Event | None = None,
        sleep: Sleep = asyncio.sleep,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._work = work
        self._seconds, self._jitter = seconds, jitter
        self._wait_for = wait_for
        self._sleep, self._rng = sleep, rng
        self._task: asyncio.Task[None] | None = None

    def start(self, *, at_once: bool = True) -> None:
        """Begin: with a round at once (or when the awaited event comes), or only after the first interval."""
        self._task = asyncio.get_running_loop().create_task(self._run(at_once), name=self.name)

    async def stop(self) -> None:
        """Stop, in the middle of a round if need be."""
        task, self._task = self._task, None
        await end_tasks([task] if task is not None else [])

    async def round(self) -> None:
        """One round; failures are logged."""
        try:
            await self._work()
        except Exception as error:
            logger.warning("%s: %s", self.name, error)

    async def _run(self, at_once: bool) -> None:
        if self._wait_for is not None:
            await self._wait_for.wait()
        if not at_once:
            await self._pause()
        while True:
            await self.round()
            await self._pause()

    async def _pause(self) -> None:
        await self._sleep(self._seconds * (1.0 + self._jitter * self._rng()))


class Background:
    """All that runs behind a server, stopped together, the newest first."""

    def __init__(self) -> None:
        self._running: list[Running] = []

    def add(self, *running: Running) -> None:
        """Take care of stopping these."""
        self._running += running

    async def stop(self) -> None:
        """Stop all of it. Stopping twice does nothing."""
        while self._running:
            await self._running.pop().stop()


async def end_tasks(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until they have ended, however they end."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
