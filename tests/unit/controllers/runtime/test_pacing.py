from __future__ import annotations

import pytest

from pilothouse.controllers.runtime.pacing import Pacer
from pilothouse.controllers.runtime.work_queue import WorkQueue
from pilothouse.testing.fake_clock import FakeClock


async def take(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while len(queue):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue[str]:
    return WorkQueue(clock=clock)


async def test_what_has_few_parts_is_looked_at_at_once(queue: WorkQueue[str], clock: FakeClock) -> None:
    pacer = Pacer(queue, clock)
    pacer.add("large", 1000)
    pacer.add("small", 10)
    assert await take(queue) == ["small"]


async def test_changes_until_the_next_look_share_it(queue: WorkQueue[str], clock: FakeClock) -> None:
    pacer, looks = Pacer(queue, clock), 0
    for _ in range(100):
        pacer.add("large", 1000)
        clock.advance(0.01)
        looks += len(await take(queue))
    assert 4 <= looks <= 5


async def test_looks_take_turns(queue: WorkQueue[str], clock: FakeClock) -> None:
    """However many keys change all the time, so many parts are looked at in a second, and no key waits for ever."""
    pacer = Pacer(queue, clock)
    seen: list[str] = []
    for _ in range(1000):
        for number in range(20):
            pacer.add(f"k{number}", 1000)
        clock.advance(0.01)
        seen += await take(queue)
    assert 45 <= len(seen) <= 50
    assert {seen.count(key) for key in set(seen)} <= {2, 3}
    assert len(set(seen)) == 20


async def test_a_look_that_was_planned_for_later_does_not_stand_in_the_way(
    queue: WorkQueue[str], clock: FakeClock
) -> None:
    queue.add_after("large", 300.0)
    Pacer(queue, clock).add("large", 1000)
    clock.advance(0.21)
    assert await take(queue) == ["large"]


async def test_what_changes_after_a_look_that_came_early_is_looked_at(queue: WorkQueue[str], clock: FakeClock) -> None:
    """A planned look is brought forward by whoever adds the key; later changes need another."""
    pacer = Pacer(queue, clock)
    pacer.add("large", 1000)
    queue.add("large")
    assert await take(queue) == ["large"]
    pacer.add("large", 1000)
    clock.advance(1.0)
    assert await take(queue) == ["large"]


async def test_a_change_while_the_key_waits_needs_no_look_of_its_own(queue: WorkQueue[str], clock: FakeClock) -> None:
    pacer = Pacer(queue, clock)
    queue.add("large")
    pacer.add("large", 1000)
    assert await take(queue) == ["large"]
    pacer.add("large", 1000)
    clock.advance(0.21)
    assert await take(queue) == ["large"]
