"""Controllers: a queue of keys and workers that reconcile them; and work that comes by the clock.

Both run under a supervisor. A key whose reconciling raises comes back after its back-off; a worker that is killed in
the middle of a key gives it back. Stopping cancels work under way: reconciling starts from what is stored, so half of
it does no harm.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from pilothouse.controllers.runtime.clock import SYSTEM, Clock
from pilothouse.controllers.runtime.work_queue import Closed, WorkQueue
from pilothouse.machinery import errors
from pilothouse.machinery.supervision import Supervised, Supervisor
from pilothouse.net.work_turns import work_turns

logger = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)


class NotYet(Exception):
    """A key cannot be reconciled as things are; it is tried again after its back-off."""


class Synced(Protocol):
    """What a controller waits for before its first key: an informer, or all of a factory's."""

    async def wait_synced(self) -> None: ...


class Until:
    """Lets a controller wait for an event."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    async def wait_synced(self) -> None:
        """Return when the event has come."""
        await self._event.wait()


class Controller(Generic[K]):
    """Takes keys from ``queue`` and reconciles each, one worker a key at a time.

    ``reconcile`` may return seconds after which it wants to see the key again. Of several workers one is left to other
    namespaces, however much one of them has to do.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[float | None]],
        *,
        workers: int = 1,
        queue: WorkQueue[K] | None = None,
        wait_for: Sequence[Synced] = (),
        clock: Clock = SYSTEM,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[K] = WorkQueue(clock=clock, name=name) if queue is None else queue
        self._reconcile, self._workers, self._wait_for = reconcile, workers, wait_for
        self._running: list[Supervised] = []

    def start(self, supervisor: Supervisor) -> None:
        """Begin to work, once all that is waited for has synced."""
        for number in range(self._workers):
            name = self.name if self._workers == 1 else f"{self.name} {number + 1}"
            self._running.append(supervisor.run(name, self._work))

    async def stop(self) -> None:
        """Stop working before the supervisor does."""
        self.queue.close()
        running, self._running = self._running, []
        for each in running:
            await each.stop()

    async def _work(self) -> None:
        for each in self._wait_for:
            await each.wait_synced()
        turns, until = work_turns(), 0.0
        share = self._workers - 1 or None
        while True:
            try:
                key = await self.queue.get(share)
            except Closed:
                # Nothing will ever be handed out again; the supervisor or ``stop`` ends this.
                await asyncio.Event().wait()
            try:
                if time.perf_counter() >= until:
                    until = await turns.begin(self.queue.namespace_of(key))
                await self.reconcile(key)
            except BaseException:
                self.queue.add(key)  # killed in the middle: somebody else is to do it
                raise
            finally:
                self.queue.done(key)

    async def reconcile(self, key: K) -> None:
        """Reconcile one key now; failures are logged and put off."""
        try:
            again = await self._reconcile(key)
        except Exception as error:
            seconds = self.queue.add_rate_limited(key)
            # Whoever loses a race looks again: a newcomer need not read of it at the first start.
            level = logging.DEBUG if isinstance(error, errors.Conflict) else logging.WARNING
            text = "%s: %s failed, again in %.3f s: %s"
            logger.log(level, text, self.name, key, seconds, error, exc_info=_unexpected(error))
        else:
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)


class Periodic:
    """Does one thing again and again, ``seconds`` apart and up to ``jitter`` of that more; failures are logged."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[None]],
        seconds: float,
        *,
        jitter: float = 0.04,
        at_once: bool = True,
        wait_for: asyncio.Event | None = None,
        clock: Clock = SYSTEM,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self._do, self._seconds, self._jitter, self._at_once = work, seconds, jitter, at_once
        self._wait_for, self._clock, self._rng = wait_for, clock, rng
        self._running: Supervised | None = None

    def start(self, supervisor: Supervisor) -> None:
        """Begin: with a round at once (or when the awaited event comes), or only after the first interval."""
        self._running = supervisor.run(self.name, self._run)

    async def stop(self) -> None:
        """Stop before the supervisor does, in the middle of a round if need be."""
        running, self._running = self._running, None
        if running is not None:
            await running.stop()

    async def round(self) -> None:
        """One round; failures are logged."""
        try:
            await self._do()
        except Exception as error:
            logger.warning("%s: %s", self.name, error, exc_info=_unexpected(error))

    async def _run(self) -> None:
        if self._wait_for is not None:
            await self._wait_for.wait()
        if not self._at_once:
            await self._pause()
        while True:
            await self.round()
            await self._pause()

    async def _pause(self) -> None:
        await self._clock.sleep(self._seconds * (1.0 + self._jitter * self._rng()))


def _unexpected(error: Exception) -> Exception | None:
    """A mistake of ours shows where it was made; what the server or the store refused says enough."""
    return error if isinstance(error, TypeError | LookupError | AttributeError | AssertionError) else None
