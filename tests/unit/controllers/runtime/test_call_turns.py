"""A crowd of calls is begun a few at a time, in order, and others get their turn in between."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.controllers.runtime.call_turns import A_TURN, CallTurns


class Crowd:
    """Notes when calls are begun, and when the loop turns."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self._turns = CallTurns(self._handle)

    async def _handle(self, number: Any) -> Any:
        self.seen.append(number)
        return number

    def ask(self, number: int) -> asyncio.Task[Any]:
        request: Any = number
        return asyncio.ensure_future(self._turns(request))

    async def turns_until(self, count: int) -> list[int]:
        """How many calls each turn has begun."""
        begun = []
        while sum(begun) < count:
            before = len(self.seen)
            await asyncio.sleep(0)
            begun.append(len(self.seen) - before)
        return [each for each in begun if each]


async def test_a_few_are_begun_at_once() -> None:
    crowd = Crowd()
    calls = [crowd.ask(number) for number in range(A_TURN)]
    assert await crowd.turns_until(A_TURN) == [A_TURN]
    assert await asyncio.gather(*calls) == list(range(A_TURN))


async def test_of_many_each_turn_begins_some() -> None:
    crowd = Crowd()
    calls = [crowd.ask(number) for number in range(5 * A_TURN + 3)]
    assert max(await crowd.turns_until(len(calls))) == A_TURN
    assert crowd.seen == list(range(len(calls)))
    assert await asyncio.gather(*calls) == crowd.seen
    again = crowd.ask(99)
    assert await again == 99


async def test_who_no_longer_waits_takes_nobodys_place() -> None:
    crowd = Crowd()
    calls = [crowd.ask(number) for number in range(3 * A_TURN)]
    await asyncio.sleep(0)
    for call in calls[A_TURN : 2 * A_TURN]:
        call.cancel()
    assert await asyncio.gather(*calls[2 * A_TURN :]) == list(range(2 * A_TURN, 3 * A_TURN))
    with pytest.raises(asyncio.CancelledError):
        await calls[A_TURN]
    assert crowd.seen == [*range(A_TURN), *range(2 * A_TURN, 3 * A_TURN)]
