"""Run a coroutine at once, and make an asyncio Task of it only if it has to wait.

Most requests are answered from memory and never suspend; a Task (allocation, a trip through the ready queue, a
context copy of its own) would cost more than the answer.  `start` sends the first `None` itself:

    start(coro)  --finishes-->              done(value)            no Task was made
                 --raises-->                failed(error)          no Task was made
                 --yields a future F-->     Task created; its first act is to yield F again, so the loop waits for
                                            F exactly as if the Task had yielded it, then the coroutine goes on

Guarantees: `done` or `failed` is called exactly once, never from inside a Task; the coroutine sees one and the same
copied `contextvars` context before and after it first waits; cancelling the Task throws into the coroutine.

The price: in the eager part `asyncio.current_task()` is None, so `asyncio.timeout`, `TaskGroup` and libraries built
on them (HTTP clients among others) must not be entered there.  `await ensure_task()` before using them.
"""

import asyncio
import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def start(
    coro: Coroutine[Any, Any, T],
    loop: asyncio.AbstractEventLoop,
    done: Callable[[T], object],
    failed: Callable[[BaseException], object],
) -> asyncio.Task[T] | None:
    """Step `coro` until it first waits; return the Task that finishes it, or None when it has already ended."""
    context = contextvars.copy_context()
    try:
        awaited = context.run(coro.send, None)
    except StopIteration as stop:
        value = stop.value
    except (Exception, asyncio.CancelledError) as error:
        failed(error)
        return None
    else:
        task = loop.create_task(_finish(coro, awaited), context=context)
        task.add_done_callback(lambda ended: _report(ended, done, failed))
        return task
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


def _report(task: asyncio.Task[T], done: Callable[[T], object], failed: Callable[[BaseException], object]) -> None:
    if task.cancelled():
        failed(asyncio.CancelledError())
    elif (error := task.exception()) is not None:
        failed(error)
    else:
        done(task.result())
