import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.controllers.backoff import Backoff
from pilothouse.controllers.work_queue import Closed, WorkQueue


class FakeAlarm:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at, self.call, self.cancelled = at, call, False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTime:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.alarms: list[FakeAlarm] = []

    def delay(self, seconds: float, call: Callable[[], None]) -> FakeAlarm:
        alarm = FakeAlarm(self.now + seconds, call)
        self.alarms.append(alarm)
        return alarm

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [alarm for alarm in self.alarms if alarm.at <= self.now]
        self.alarms = [alarm for alarm in self.alarms if alarm.at > self.now]
        for alarm in sorted(due, key=lambda alarm: alarm.at):
            if not alarm.cancelled:
                alarm.call()


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
    clock = FakeTime()
    queue: WorkQueue[str] = WorkQueue(delay=clock.delay)
    queue.add_after("slow", 10)
    queue.add_after("fast", 1)
    queue.add_after("now", 0)
    assert await take(queue) == ["now"]
    clock.advance(1)
    assert await take(queue) == ["fast"]
    clock.advance(9)
    assert await take(queue) == ["slow"]


async def test_adding_at_once_overtakes_a_delay() -> None:
    clock = FakeTime()
    queue: WorkQueue[str] = WorkQueue(delay=clock.delay)
    queue.add_after("a", 10)
    queue.add("a")
    assert await take(queue) == ["a"]
    queue.done("a")
    clock.advance(20)
    assert len(queue) == 0


async def test_failures_are_put_off_longer_each_time() -> None:
    clock = FakeTime()
    queue: WorkQueue[str] = WorkQueue(Backoff(1.0, 60.0), clock.delay)
    waits = []
    for _ in range(4):
        waits.append(queue.retry("a"))
        clock.advance(waits[-1])
        assert await take(queue) == ["a"]
        queue.done("a")
    assert waits == [1.0, 2.0, 4.0, 8.0]
    queue.succeeded("a")
    assert queue.retry("a") == 1.0


async def test_a_closed_queue_takes_and_gives_nothing() -> None:
    clock = FakeTime()
    queue: WorkQueue[str] = WorkQueue(delay=clock.delay)
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
