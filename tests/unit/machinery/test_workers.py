"""Work done aside: its results and errors come back, and it ends when nobody waits any more."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pilothouse.machinery import workers
from pilothouse.machinery.workers import (
    LONG,
    THREADS,
    VERY_LONG,
    Abandoned,
    aside,
    checkpoint,
    elsewhere,
    finish,
    weighed,
    work_for,
)


async def test_short_work_is_done_at_once_and_long_work_in_a_thread() -> None:
    assert await weighed(LONG - 1, threading.get_ident) == threading.get_ident()
    assert await weighed(LONG, threading.get_ident) != threading.get_ident()


async def test_the_loop_soon_has_its_turn_beside_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever store there is: with Python's own 5 ms, a loop waits that long at each turn while work is done aside."""
    monkeypatch.setattr(workers, "_long", workers._Lane("short-turns", 1))
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    try:
        await weighed(LONG, threading.get_ident)
        assert sys.getswitchinterval() == pytest.approx(5e-5)
    finally:
        sys.setswitchinterval(before)


async def test_errors_come_back() -> None:
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0)


async def test_work_that_is_aside_already_is_not_moved_again() -> None:
    async def nested() -> bool:
        return await aside(threading.get_ident) == await weighed(LONG, threading.get_ident)

    assert await aside(lambda: finish(nested()))


async def test_a_coroutine_that_waits_for_something_else_is_refused() -> None:
    with pytest.raises(RuntimeError, match="nothing to wait for"):
        await aside(lambda: finish(asyncio.sleep(0)))


async def test_more_work_than_threads_is_all_done() -> None:
    assert await asyncio.gather(*(aside(pow, 2, n) for n in range(THREADS * 5))) == [2**n for n in range(THREADS * 5)]


async def test_work_ends_when_nobody_waits_for_it() -> None:
    begun, ended = threading.Event(), threading.Event()

    def endless() -> None:
        begun.set()
        try:
            while True:
                checkpoint()
        except Abandoned:
            ended.set()
            raise

    waiting = [asyncio.ensure_future(aside(endless)) for _ in range(THREADS)]
    await asyncio.to_thread(begun.wait)
    for each in waiting:
        each.cancel()
    assert await asyncio.to_thread(ended.wait, 30)
    # All threads are free again, and none of them stops innocent work.
    assert await asyncio.gather(*(aside(sum, range(1000)) for _ in range(THREADS * 3))) == [499500] * THREADS * 3


async def test_work_is_stopped_at_its_checkpoints_alone() -> None:
    """What it does in between, such as importing a module, is done to the end: half done it would do harm for good."""
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def import_something() -> None:
        begun.set()
        go.wait()
        sum(range(1000))
        done.set()

    waiting = asyncio.ensure_future(aside(import_something))
    await asyncio.to_thread(begun.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go.set()
    assert await asyncio.to_thread(done.wait, 30)


async def test_a_checkpoint_lets_work_go_on_that_somebody_waits_for() -> None:
    checkpoint()
    await aside(checkpoint)


async def test_work_that_has_not_begun_is_never_begun() -> None:
    go, ran = threading.Event(), threading.Event()
    blocking = [asyncio.ensure_future(aside(go.wait)) for _ in range(THREADS)]
    late = asyncio.ensure_future(aside(ran.set))
    await asyncio.sleep(0)
    late.cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*blocking)
    await aside(int)
    assert not ran.is_set()


class Gate:
    """Work that waits until it may go on, so that a lane is taken until then."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        self.go.wait()


@pytest.fixture
def _all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing takes more than its time, be it that the thread has to look for cycles in a large process.

    In lanes of their own: a thread that stands by for so long would do so in the next test, too.
    """
    monkeypatch.setattr(workers, "_ITS_TIME", 600.0)
    monkeypatch.setattr(workers, "_ITS_WAIT", 600.0)
    for name in ("_long", "_very_long"):
        monkeypatch.setattr(workers, name, workers._Lane(name, 2))


@pytest.mark.usefixtures("_all_the_time")
async def test_work_is_done_one_at_a_time() -> None:
    """Else the loop would wait for all threads that are just in a call into C."""
    beside: list[int] = []
    working: set[int] = set()

    def work() -> None:
        working.add(threading.get_ident())
        sum(range(100_000))
        beside.append(len(working))
        working.discard(threading.get_ident())

    await asyncio.gather(*(aside(work) for _ in range(20)))
    assert beside == [1] * 20


async def test_work_does_not_wait_for_what_is_much_longer() -> None:
    gate = Gate()
    blocking = asyncio.ensure_future(aside(gate, weight=VERY_LONG))
    assert await weighed(VERY_LONG - 1, pow, 2, 3) == 8
    gate.go.set()
    await blocking


async def test_another_is_begun_beside_work_that_takes_more_than_its_time() -> None:
    relieved = threading.Event()

    def spin() -> None:
        while not relieved.is_set():
            sum(range(1_000))

    await asyncio.gather(aside(spin), aside(relieved.set))


@pytest.mark.usefixtures("_all_the_time")
async def test_nobody_waits_behind_work_that_another_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_very_long", workers._Lane("elsewhere", 2))
    gate = Gate()

    def work() -> None:
        with elsewhere():
            gate()

    blocking = asyncio.ensure_future(aside(work))
    await asyncio.to_thread(gate.begun.wait)
    assert await aside(pow, 2, 3) == 8
    gate.go.set()
    await blocking


async def test_one_user_does_not_take_all_threads() -> None:
    """Not even with work that takes more than its time: others may come."""
    beside: list[int] = []
    working: set[int] = set()

    def work() -> None:
        working.add(threading.get_ident())
        ends = time.thread_time() + 0.4
        while time.thread_time() < ends:
            sum(range(1_000))
        beside.append(len(working))
        working.discard(threading.get_ident())

    work_for("many")
    await asyncio.gather(*(aside(work) for _ in range(3)))
    assert beside == [1] * 3


@pytest.mark.usefixtures("_all_the_time")
async def test_users_take_turns_and_the_oldest_request_of_each_goes_first() -> None:
    done: list[str] = []
    gate = Gate()
    blocking = asyncio.ensure_future(aside(gate))
    await asyncio.to_thread(gate.begun.wait)
    ready = {name: asyncio.Event() for name in "abcx"}

    async def request(user: str, name: str) -> None:
        work_for(user)
        await ready[name].wait()
        await aside(done.append, name)

    requests = [asyncio.ensure_future(request("one" if name == "x" else "many", name)) for name in "abcx"]
    for name in "cbax":  # what each has to do comes in another order than the requests did
        await asyncio.sleep(0)
        ready[name].set()
        await asyncio.sleep(0)
    gate.go.set()
    await asyncio.gather(blocking, *requests)
    assert done == ["a", "x", "b", "c"]


class Large:
    """Stands for what long work is done on."""


async def is_gone(large: weakref.ref[Large]) -> bool:
    await aside(int)  # the thread has put away what it had
    await asyncio.sleep(0)
    return large() is None


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nobody looks for cycles: what is in none goes at once."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_what_was_worked_on_goes_with_an_error() -> None:
    """Errors know the frames that they came through, and those must not know what knows the error."""

    def work(large: Large) -> None:
        raise ValueError

    async def request() -> weakref.ref[Large]:
        large = Large()
        with suppress(ValueError):
            await aside(work, large)
        return weakref.ref(large)

    assert await is_gone(await request())


@pytest.mark.usefixtures("no_collector")
async def test_what_was_worked_on_goes_when_nobody_waits() -> None:
    gate = Gate()

    async def request() -> weakref.ref[Large]:
        large = Large()
        waiting = asyncio.ensure_future(aside(lambda _: gate(), large))
        await asyncio.to_thread(gate.begun.wait)
        waiting.cancel()
        await asyncio.wait([waiting])
        return weakref.ref(large)

    large = await request()
    gate.go.set()
    assert await is_gone(large)
