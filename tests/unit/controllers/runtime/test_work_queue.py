import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controllers.runtime.work_queue import Closed, WorkQueue
from pilothouse.machinery.backoff import Backoff
from pilothouse.testing.fake_clock import FakeClock


async def take(queue: WorkQueue[str]) -> list[str]:
    """All keys that can be had now, in order; they are not done."""
    keys = []
    while len(queue):
        keys.append(await queue.get())
    return keys


async def test_a_key_waits_once_and_in_the_order_of_its_first_adding() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key)
    assert await take(queue) == ["a", "b", "c"]


async def test_a_key_in_work_comes_back_only_when_that_work_is_done() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await take(queue) == ["a"]
    queue.done("a")
    assert len(queue) == 0


async def test_waiting_for_a_key_ends_when_one_is_added() -> None:
    queue: WorkQueue[str] = WorkQueue()
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await waiting == "a"


async def test_keys_come_after_their_delay() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("slow", 10)
    queue.add_after("fast", 1)
    queue.add_after("now", 0)
    assert await take(queue) == ["now"]
    clock.advance(1)
    assert await take(queue) == ["fast"]
    clock.advance(9)
    assert await take(queue) == ["slow"]


async def test_of_several_times_the_earliest_holds() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add_after("a", 2)
    queue.add_after("a", 5)
    clock.advance(2)
    assert await take(queue) == ["a"]
    queue.done("a")
    clock.advance(20)
    assert len(queue) == 0


async def test_adding_at_once_overtakes_a_delay() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add("a")
    assert await take(queue) == ["a"]
    queue.done("a")
    clock.advance(20)
    assert len(queue) == 0


async def test_failures_are_put_off_longer_each_time() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(Backoff(1.0, 60.0), clock)
    waits = []
    for _ in range(4):
        waits.append(queue.add_rate_limited("a"))
        clock.advance(waits[-1])
        assert await take(queue) == ["a"]
        queue.done("a")
    assert waits == [1.0, 2.0, 4.0, 8.0]
    queue.forget("a")
    assert queue.add_rate_limited("a") == 1.0


async def test_a_closed_queue_takes_and_gives_nothing() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add_after("later", 1)
    queue.close()
    queue.add("a")
    queue.add_after("b", 1)
    clock.advance(5)
    with pytest.raises(Closed):
        await waiting
    with pytest.raises(Closed):
        await queue.get()


@given(st.lists(st.sampled_from([("add", "a"), ("add", "b"), ("get", ""), ("done", "")]), max_size=60))
def test_no_key_is_lost_or_worked_on_twice_at_a_time(steps: list[tuple[str, str]]) -> None:
    async def run() -> None:
        queue: WorkQueue[str] = WorkQueue()
        working: list[str] = []
        pending: set[str] = set()
        for step, key in steps:
            if step == "add":
                queue.add(key)
                pending.add(key)
            elif step == "get" and len(queue):
                got = await queue.get()
                assert got not in working
                working.append(got)
                pending.discard(got)
            elif step == "done" and working:
                queue.done(working.pop(0))
        for key in working:
            queue.done(key)
        assert set(await take(queue)) == pending

    asyncio.run(run())


async def test_namespaces_take_turns() -> None:
    queue: WorkQueue[tuple[str, str]] = WorkQueue()
    for number in range(5):
        queue.add(("many", str(number)))
    queue.add(("few", "0"))
    queue.add(("few", "1"))
    handed_out = [await queue.get() for _ in range(7)]
    assert [namespace for namespace, _ in handed_out] == ["many", "few", "many", "few", "many", "many", "many"]
    assert [name for namespace, name in handed_out if namespace == "many"] == ["0", "1", "2", "3", "4"]
