"""What the server does by itself takes places in turns of the loop: few, and none once the time is over."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.net.working_clock import Clock

from pilothouse.net.work_turns import PLACES, SECONDS, TURN_SECONDS, WorkTurns, work_turns


class Crowd:
    """Works for some time at each place, and notes it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.clock, self._seconds = Clock(), seconds
        self.turns = WorkTurns(asyncio.get_running_loop(), self.clock)
        self.seen: list[int] = []

    def _work(self, number: int) -> None:
        self.clock.now += self._seconds
        self.seen.append(number)

    def ask(self, number: int) -> asyncio.Task[None]:
        """A task that waits for a place."""

        async def work() -> None:
            await self.turns.take()
            self._work(number)

        return asyncio.ensure_future(work())

    def call(self, number: int) -> None:
        """A call that is made at a place."""
        self.turns.call(lambda: self._work(number))

    async def turns_until(self, count: int) -> list[int]:
        """How many have worked in each turn."""
        worked = []
        while len(self.seen) < count:
            before = len(self.seen)
            await asyncio.sleep(0)
            worked.append(len(self.seen) - before)
        return [each for each in worked if each]


async def test_a_few_begin_at_once() -> None:
    crowd = Crowd()
    tasks = [crowd.ask(number) for number in range(PLACES)]
    assert await crowd.turns_until(PLACES) == [PLACES]
    await asyncio.gather(*tasks)


async def test_of_many_each_turn_has_places_for_some_in_their_order() -> None:
    crowd = Crowd()
    tasks = [crowd.ask(number) for number in range(4 * PLACES)]
    await asyncio.sleep(0)
    for number in range(4 * PLACES, 5 * PLACES + 3):
        crowd.call(number)
    assert max(await crowd.turns_until(5 * PLACES + 3)) == PLACES
    assert crowd.seen == list(range(5 * PLACES + 3))
    await asyncio.gather(*tasks)
    await crowd.ask(99)
    assert crowd.seen[-1] == 99


@pytest.mark.parametrize(("seconds", "most"), [(TURN_SECONDS / 2, 2), (5 * TURN_SECONDS, 1)])
async def test_no_place_is_given_once_others_have_taken_their_time(seconds: float, most: int) -> None:
    crowd = Crowd(seconds)
    tasks = [crowd.ask(number) for number in range(PLACES)]
    await asyncio.sleep(0)
    for number in range(PLACES, 2 * PLACES):
        crowd.call(number)
    assert max(await crowd.turns_until(2 * PLACES)) == most
    assert crowd.seen == list(range(2 * PLACES))
    await asyncio.gather(*tasks)


async def test_who_comes_new_does_not_pass_those_who_wait() -> None:
    crowd = Crowd(TURN_SECONDS)
    tasks = [crowd.ask(number) for number in range(3)]
    for number in range(3, 12):
        await asyncio.sleep(0)
        tasks.append(crowd.ask(number))
    await asyncio.gather(*tasks)
    assert crowd.seen == list(range(12))


async def test_who_no_longer_waits_takes_nobodys_place() -> None:
    crowd = Crowd()
    tasks = [crowd.ask(number) for number in range(3 * PLACES)]
    await asyncio.sleep(0)
    for task in tasks[PLACES : 2 * PLACES]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert crowd.seen == [*range(PLACES), *range(2 * PLACES, 3 * PLACES)]
    assert all(task.cancelled() for task in tasks[PLACES : 2 * PLACES])


async def test_a_place_is_for_some_time() -> None:
    crowd = Crowd()
    crowd.clock.now = 7.0
    assert await crowd.turns.begin() == 7.0 + SECONDS


async def test_a_loop_has_one_line() -> None:
    assert work_turns() is work_turns()
