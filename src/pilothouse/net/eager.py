"""Run a coroutine at once, and make an asyncio Task of it only if it has to wait for something that needs one.

Most requests are answered from memory and never suspend; a Task (allocation, a trip through the ready queue, a
context copy of its own) would cost more than the answer.  Those that wait mostly wait for one thing, the store or
another server, and whoever settles that can go on with them on the spot.  `start` sends the first `None` itself:

    start(coro)  --finishes-->              done(value)            no Task was made
                 --raises-->                failed(error)          no Task was made
                 --yields a Prompt P-->     whoever settles P goes on with the coroutine, as `start` does
                 --yields a future F-->     Task created; its first act is to yield F again, so the loop waits for
                                            F exactly as if the Task had yielded it, then the coroutine goes on

Guarantees: `done` or `failed` is called exactly once, never from inside a Task; the coroutine sees one and the same
copied `contextvars` context before and after it waits; cancelling throws into the coroutine, in a turn of its own.

The price: until a coroutine has waited for an ordinary future `asyncio.current_task()` is None, so `asyncio.timeout`,
`TaskGroup` and libraries built on them (HTTP clients among others) must not be entered.  `await ensure_task()` before
using them: from then on it runs in a Task.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class Prompt(asyncio.Future[T]):
    """A future that wakes the one coroutine waiting for it within the call that settles it, not a turn later.

    For whoever settles it on the loop with nothing left to do: what waited runs before `settle` or `refuse` returns.
    In a Task it is a future like any other.
    """

    waiter: Callable[[], None] | None = None

    def settle(self, value: T) -> None:
        """Set the result, if nobody has cancelled this, and go on with what waits for it."""
        if not self.done():
            self.set_result(value)
            if self.waiter is not None:
                self.waiter()

    def refuse(self, error: Exception) -> None:
        """Set an exception in the same way."""
        if not self.done():
            self.set_exception(error)
            if self.waiter is not None:
                self.waiter()


class Suspended(Generic[T]):
    """A coroutine that waits: for a Prompt, or in the Task that finishes it."""

    __slots__ = ("_context", "_coro", "_done", "_ended", "_failed", "_loop", "_prompt", "_task")

    def __init__(
        self,
        coro: Coroutine[Any, Any, T],
        context: contextvars.Context,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[T], object],
        failed: Callable[[BaseException], object],
    ) -> None:
        self._coro, self._context, self._loop = coro, context, loop
        self._done, self._failed = done, failed
        self._ended: list[Callable[[Suspended[T]], object]] | None = []
        self._prompt: Prompt[Any] | None = None
        self._task: asyncio.Task[T] | None = None

    @property
    def is_over(self) -> bool:
        """Whether the coroutine has ended."""
        return self._ended is None

    def when_over(self, callback: Callable[[Suspended[T]], object]) -> None:
        """Call back when the coroutine has ended, before `done` or `failed` is called; at once if it has already."""
        if self._ended is None:
            callback(self)
        else:
            self._ended.append(callback)

    def cancel(self) -> None:
        """Throw CancelledError into the coroutine, in a later turn of the loop."""
        if self._task is not None:
            if cast("types.CoroutineType[Any, Any, T]", self._task.get_coro()).cr_suspended:
                self._task.cancel()
            else:  # it has not begun, and would end without a word to the coroutine
                self._loop.call_soon(self._task.cancel)
        elif self._prompt is not None:
            prompt, self._prompt = self._prompt, None
            prompt.waiter = None
            prompt.cancel()
            self._run_task(_cancelled(self._coro))

    def wait(self, awaited: Any) -> None:
        """The coroutine wants to wait for this."""
        if type(awaited) is Prompt and awaited.waiter is None:
            awaited._asyncio_future_blocking = False  # as a Task says that it has understood, or nobody else could wait
            self._prompt = awaited
            awaited.waiter = self._go_on
        else:
            self._run_task(_finish(self._coro, awaited))

    def _go_on(self) -> None:
        prompt, self._prompt = self._prompt, None
        assert prompt is not None
        prompt.waiter = None
        try:
            awaited = self._context.run(self._coro.send, None)
        except StopIteration as stop:
            value = stop.value
        except (Exception, asyncio.CancelledError) as error:
            self._end()
            self._failed(error)
            return
        else:
            self.wait(awaited)
            return
        self._end()
        self._done(value)

    def _run_task(self, rest: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(rest, context=self._context)
        self._task.add_done_callback(self._report)

    def _report(self, task: asyncio.Task[T]) -> None:
        self._end()
        if task.cancelled():
            self._failed(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self._failed(error)
        else:
            self._done(task.result())

    def _end(self) -> None:
        callbacks, self._ended = self._ended, None
        for callback in callbacks or ():
            callback(self)


def start(
    coro: Coroutine[Any, Any, T],
    loop: asyncio.AbstractEventLoop,
    done: Callable[[T], object],
    failed: Callable[[BaseException], object],
) -> Suspended[T] | None:
    """Step `coro` until it first waits; return what stands for the rest of it, or None when it has already ended."""
    context = contextvars.copy_context()
    try:
        awaited = context.run(coro.send, None)
    except StopIteration as stop:
        value = stop.value
    except (Exception, asyncio.CancelledError) as error:
        failed(error)
        return None
    else:
        suspended = Suspended(coro, context, loop, done, failed)
        suspended.wait(awaited)
        return suspended
    done(value)
    return None


def step(coro: Coroutine[Any, Any, T]) -> tuple[T] | Coroutine[Any, Any, T]:
    """What `coro` returns, in a tuple, or a coroutine for the rest of it where it has to wait. Raises what it raises.

    For a filter that is no coroutine itself: it goes on at once with what it asked for, and becomes one otherwise.
    """
    try:
        awaited = coro.send(None)
    except StopIteration as stop:
        return (stop.value,)
    return _finish(coro, awaited)


async def ensure_task() -> None:
    """Return inside an asyncio Task: at once when already in one, else after one turn of the loop."""
    if asyncio.current_task() is None:
        await asyncio.sleep(0)


async def _finish(coro: Coroutine[Any, Any, T], awaited: Any) -> T:
    return await resume(coro, awaited)


async def _cancelled(coro: Coroutine[Any, Any, T]) -> T:
    return await _thrown(coro, asyncio.CancelledError())


@types.coroutine
def _thrown(coro: Coroutine[Any, Any, T], error: BaseException) -> Generator[Any, Any, T]:
    try:
        awaited = coro.throw(error)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
    return (yield from resume(coro, awaited))


@types.coroutine
def resume(coro: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """Go on with a coroutine that was stepped by hand and asked to wait for ``awaited``."""
    # `yield from coro` would first send None into it, that is, wake it before `awaited` is done. So yield what it
    # already asked for, and delegate only once that is over. A future yielded by its own __await__ still carries the
    # mark by which a Task recognises it.
    while True:
        try:
            yield awaited
        except GeneratorExit:
            coro.close()
            raise
        except BaseException as error:
            try:
                awaited = coro.throw(error)
            except StopIteration as stop:
                return stop.value  # type: ignore[no-any-return]
        else:
            return (yield from coro)  # type: ignore[no-any-return]
