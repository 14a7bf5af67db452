"""Threads for work that may take long, so that it never holds the event loop.

Python runs one thread at a time, yet it takes turns: with the switch interval that the store sets, the loop waits some
dozens of microseconds for its turn, however long the work beside it lasts. So whatever grows with what a client sent is
done on the loop while that is short, and ``aside`` when it is long. A handful of threads is enough: more would only
make each other, and the loop, wait.

Work done aside must touch nothing that others change meanwhile: the request's own objects, and what is immutable.
Whoever stops waiting (the time is up, the client has gone) stops the work as well, at its next ``checkpoint``: what can
take long has one wherever it goes round. A thread is never interrupted elsewhere: an exception from outside in the
middle of an import, or between taking a lock and guarding it, would leave the lock taken for good.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

LONG: Final = 16 * 1024
"""From how many bytes of input on work is done aside: what one of less costs is a matter of milliseconds."""
THREADS: Final = 4
ABANDONED: Final[set[int]] = set()
"""The threads whose work nobody waits for any more. Code that goes round often asks whether there are any before it
calls ``checkpoint``: that costs next to nothing."""

Result = TypeVar("Result")


class Abandoned(BaseException):
    """Ends work that nobody waits for; no ``except Exception`` holds it up."""


def checkpoint() -> None:
    """Raise ``Abandoned`` if nobody waits any more for the work that this is part of. On the loop it does nothing."""
    if threading.get_ident() in ABANDONED:
        raise Abandoned


class _Job(Generic[Result]):
    """A piece of work, and the future that waits for it on its loop."""

    __slots__ = ("_abandoned", "_context", "_future", "_lock", "_loop", "_thread", "_work")

    def __init__(self, work: Callable[[], Result], loop: asyncio.AbstractEventLoop) -> None:
        self._work, self._loop = work, loop
        self._future: asyncio.Future[Result] = loop.create_future()
        self._context: Context = copy_context()
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._abandoned = False

    async def result(self) -> Result:
        try:
            return await self._future
        except asyncio.CancelledError:
            self._abandon()
            raise

    def run(self) -> None:
        """Called in a worker's thread; raises nothing."""
        thread = threading.get_ident()
        with self._lock:
            if self._abandoned:
                return
            self._thread = thread
        error: BaseException | None = None
        result: Any = None
        try:
            result = self._context.run(self._work)
        except BaseException as failure:
            error = failure
        with self._lock:
            self._thread = None
            ABANDONED.discard(thread)
        with suppress(RuntimeError):  # without a loop there is nobody left who could want to know
            self._loop.call_soon_threadsafe(_settle, self._future, result, error)

    def _abandon(self) -> None:
        self._future.cancel()
        with self._lock:
            self._abandoned = True
            if self._thread is not None:
                ABANDONED.add(self._thread)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class _Workers:
    """The threads of this process; one is started whenever all others are busy, up to the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._queue: SimpleQueue[_Job[Any]] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._idle = 0
        """How many wait for work; below zero, how much work waits for them."""
        self._own = threading.local()

    @property
    def here(self) -> bool:
        """Whether the calling code runs in one of these threads."""
        return getattr(self._own, "here", False)

    def submit(self, job: _Job[Any]) -> None:
        with self._lock:
            if self._idle <= 0 and self._started < self._limit:
                self._started += 1
                name = f"pilothouse-worker-{self._started}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
            else:
                self._idle -= 1
        self._queue.put(job)

    def _serve(self) -> None:
        self._own.here = True
        while True:
            self._queue.get().run()
            with self._lock:
                self._idle += 1


_workers: Final = _Workers(THREADS)


async def aside(work: Callable[..., Result], *arguments: Any) -> Result:
    """What ``work`` gives, made in a thread; at once for a caller that is in one already."""
    if _workers.here:
        return work(*arguments)
    job = _Job(lambda: work(*arguments), asyncio.get_running_loop())
    _workers.submit(job)
    return await job.result()


async def weighed(weight: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """What ``work`` gives, made here and now if its input is short, else aside."""
    if weight < LONG or _workers.here:
        return work(*arguments)
    return await aside(work, *arguments)


class NeedsTime(BaseException):
    """Work on the loop turned out to be long; it is to be made anew, aside."""


class _Patience(threading.local):
    """How much work a thread may still do before it has to give up; None for as much as it takes."""

    left: int | None = None

    def spend(self, cost: int) -> None:
        """Note work that was done. Raises ``NeedsTime`` when that was too much for where it was done."""
        if self.left is not None:
            self.left -= cost
            if self.left < 0:
                raise NeedsTime


PATIENCE: Final = _Patience()
_SHORT: Final = 40_000
"""In units of what expressions cost: some five to ten milliseconds."""


async def attempted(weight: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """What ``work`` gives. How long it takes shows only as it is done: it is begun here, and made anew aside if long.

    So it must be such that making it twice is as good as once, and it must ``spend`` as it goes.
    """
    if weight >= LONG or _workers.here:
        return await weighed(weight, work, *arguments)
    outer, PATIENCE.left = PATIENCE.left, _SHORT
    try:
        return work(*arguments)
    except NeedsTime:
        pass
    finally:
        PATIENCE.left = outer
    return await aside(work, *arguments)


def finish(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """For a worker: run a coroutine to its end that waits for nothing but work done aside."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("a coroutine that runs aside has nothing to wait for")
