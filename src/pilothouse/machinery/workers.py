"""Threads for work that may take long, so that it never holds the event loop.

Python runs one thread at a time, yet it takes turns: with the switch interval of ``lock_turns.py``, the loop waits some
dozens of microseconds for its turn, however long the work beside it lasts. So whatever grows with what a client sent is
done on the loop while that is short, and ``aside`` when it is long.

Threads that work at the same time make each other, and the loop, wait: each of them may be in a call into C of some
milliseconds, and the loop's turn comes after all of theirs. So there are two lanes, for what is long and for what is
very long, and in each one piece of work is done at a time; another user's is begun beside it when that takes more than
its time. Users take turns, and none has more than one thread of a lane; of one user's requests the oldest goes first,
so that one is finished before the next is begun.

Work done aside must touch nothing that others change meanwhile: the request's own objects, and what is immutable.
Whoever stops waiting (the time is up, the client has gone) stops the work as well, at its next ``checkpoint``: what can
take long has one wherever it goes round. A thread is never interrupted elsewhere: an exception from outside in the
middle of an import, or between taking a lock and guarding it, would leave the lock taken for good.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from pilothouse.machinery.lock_turns import take_short_turns
from pilothouse.machinery.processor_clock import processor_clock

LONG: Final = 16 * 1024
"""From how many bytes of input on work is done aside: what one of less costs is a matter of milliseconds."""
VERY_LONG: Final = 256 * 1024
"""From how many bytes on it may take a good part of a second, which shorter work does not wait for."""
THREADS: Final = 4
"""How many pieces of work are done at a time in a lane where all take more than their time."""
_ITS_TIME: Final = 0.25
"""After so many seconds of the processor others no longer wait for a piece of work."""
_ITS_WAIT: Final = 5.0
"""Nor after so many seconds: it may be stuck, or the machine very busy."""
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
        future = self._future
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon()
            raise
        finally:
            # An error knows the frames it went through, and they this job: all they work on would stay until cycles
            # are looked for.
            del self._future, self._work, future

    def run(self) -> None:
        """Called in a worker's thread; raises nothing."""
        thread = threading.get_ident()
        with self._lock:
            if self._abandoned:
                return
            self._thread = thread
            future, work = self._future, self._work
        error: BaseException | None = None
        result: Any = None
        try:
            result = self._context.run(work)
        except BaseException as failure:
            error = failure
        with self._lock:
            self._thread = None
            ABANDONED.discard(thread)
        with suppress(RuntimeError):  # without a loop there is nobody left who could want to know
            self._loop.call_soon_threadsafe(_settle, future, result, error)
        del future, work, error, result

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


_requests: Final = count()
_NOBODYS: Final = ("", -1)
_REQUEST: Final[ContextVar[tuple[str, int]]] = ContextVar("whose work, and which request's", default=_NOBODYS)


def work_for(user: str) -> None:
    """Say whose work it is that the current context has done aside from now on: it takes turns with that of others."""
    _REQUEST.set((user, next(_requests)))


class _Turns:
    """The work that waits in a lane. Users take turns, and of each the request goes first that came first."""

    def __init__(self) -> None:
        self._of_users: dict[str, list[tuple[int, int, _Job[Any]]]] = {}
        self._count = count()

    def __bool__(self) -> bool:
        return bool(self._of_users)

    def next_user(self, busy: set[str]) -> str | None:
        """Whose turn it is of those for whom nothing is done yet; work without a user is nobody's too much."""
        return next((user for user in self._of_users if not user or user not in busy), None)

    def add(self, job: _Job[Any], user: str, request: int) -> None:
        heappush(self._of_users.setdefault(user, []), (request, next(self._count), job))

    def take(self, user: str) -> _Job[Any]:
        waiting = self._of_users.pop(user)
        job = heappop(waiting)[2]
        if waiting:
            self._of_users[user] = waiting
        return job


class _Begun:
    """Work that the thread which makes this has begun."""

    def __init__(self, user: str) -> None:
        self.user = user
        self.is_elsewhere = False
        """Whether it waits for another process, which takes nothing from those who wait for it."""
        self._clock = processor_clock(threading.get_ident())
        self._computed, self._started = self._clock(), monotonic()

    def left(self) -> float:
        """For how many seconds others still wait for it, at least."""
        if self.is_elsewhere:
            return 0.0
        return min(_ITS_TIME + self._computed - self._clock(), _ITS_WAIT + self._started - monotonic())


class _Lane:
    """Threads of which one works, and another stands by for the case that it takes more than its time."""

    def __init__(self, name: str, limit: int) -> None:
        self._name, self._limit = name, limit
        self._turns = _Turns()
        self._changed = threading.Condition()
        self._started = 0
        self._idle = 0
        self._begun: dict[int, _Begun] = {}
        """The work that is being done, by thread."""
        self._standing_by = False

    def submit(self, job: _Job[Any], user: str, request: int) -> None:
        with self._changed:
            self._turns.add(job, user, request)
            if not (self._begun and self._standing_by):
                self._call_one()

    def _call_one(self) -> None:
        """See to it that some thread looks at what waits."""
        if self._idle:
            self._changed.notify()
        elif self._started < self._limit:
            take_short_turns()
            self._started += 1
            name = f"pilothouse-{self._name}-work-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _serve(self) -> None:
        _here.aside = True
        while True:
            self._take().run()
            with self._changed:
                del self._begun[threading.get_ident()]

    def _take(self) -> _Job[Any]:
        with self._changed:
            while True:
                user = self._turns.next_user({begun.user for begun in self._begun.values()})
                patience = self._patience()
                if user is None or (patience > 0 and self._standing_by):
                    self._wait(None)
                elif patience <= 0:
                    _here.begun = self._begun[threading.get_ident()] = _Begun(user)
                    job = self._turns.take(user)
                    if self._turns and not self._standing_by:
                        self._call_one()
                    return job
                else:
                    self._standing_by = True
                    self._wait(patience)
                    self._standing_by = False

    def _wait(self, seconds: float | None) -> None:
        self._idle += 1
        self._changed.wait(seconds)
        self._idle -= 1

    def _patience(self) -> float:
        """How long the work that is being done may still take before more is begun."""
        return max((begun.left() for begun in self._begun.values()), default=0.0)


class _Here(threading.local):
    """What holds for the calling thread."""

    aside = False
    """Whether it is a worker's."""
    begun: _Begun | None = None
    """What it does as a worker."""


_here: Final = _Here()
_long: Final = _Lane("long", THREADS)
_very_long: Final = _Lane("very-long", THREADS)


@contextmanager
def elsewhere() -> Iterator[None]:
    """While another process works for the calling thread, others need not wait for their turn behind it."""
    begun = _here.begun
    if begun is None:
        yield
        return
    begun.is_elsewhere = True
    try:
        yield
    finally:
        begun.is_elsewhere = False


async def aside(work: Callable[..., Result], *arguments: Any, weight: int = VERY_LONG) -> Result:
    """What ``work`` gives, made in a thread; at once for a caller that is in one already."""
    if _here.aside:
        return work(*arguments)
    job = _Job(lambda: work(*arguments), asyncio.get_running_loop())
    user, request = _REQUEST.get()
    if request < 0:
        request = next(_requests)
    (_long if weight < VERY_LONG else _very_long).submit(job, user, request)
    return await job.result()


def afterwards(work: Callable[..., object], *arguments: Any) -> None:
    """Have work done aside that nobody waits for. It must raise nothing."""
    job = _Job(lambda: work(*arguments), asyncio.get_running_loop())
    user, request = _REQUEST.get()
    _very_long.submit(job, user, next(_requests) if request < 0 else request)


async def weighed(weight: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """What ``work`` gives, made here and now if its input is short, else aside."""
    if weight < LONG or _here.aside:
        return work(*arguments)
    return await aside(work, *arguments, weight=weight)


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
_SHORT: Final = 10_000
"""In units of what expressions cost: two or three milliseconds."""


async def attempted(weight: int, work: Callable[..., Result], *arguments: Any) -> Result:
    """What ``work`` gives. How long it takes shows only as it is done: it is begun here, and made anew aside if long.

    So it must be such that making it twice is as good as once, and it must ``spend`` as it goes.
    """
    if weight >= LONG or _here.aside:
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
