"""Many who greet at once are greeted in their order, and others get their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.unit.net.working_clock import Clock

from pilothouse.net.greetings import TURN_SECONDS, Greetings


async def turns_of(steps: int, seconds: float, fails: bool = False) -> list[str]:
    """What happens when so many steps come in one turn, each of this length, and somebody else asks at every turn."""
    loop, clock, seen = asyncio.get_running_loop(), Clock(), []
    loop.set_exception_handler(lambda loop, context: None)
    greetings = Greetings(loop, clock)

    def step(number: int) -> Callable[[], None]:
        def work() -> None:
            clock.now += seconds
            seen.append(str(number))
            if fails:
                raise RuntimeError

        return work

    for number in range(steps):
        try:
            greetings.soon(step(number))
        except RuntimeError:
            assert number == 0
    while len([each for each in seen if each != "|"]) < steps:
        seen.append("|")
        await asyncio.sleep(0)
    return seen


async def test_one_alone_is_greeted_at_once() -> None:
    assert await turns_of(1, 1.0) == ["0"]


async def test_long_steps_take_a_turn_each() -> None:
    assert "".join(await turns_of(4, TURN_SECONDS)) == "0|1|2|3"


async def test_short_steps_share_a_turn() -> None:
    assert "".join(await turns_of(9, TURN_SECONDS / 4)) == "0|1234|5678"


async def test_a_failing_step_holds_up_nobody() -> None:
    assert "".join(each for each in await turns_of(4, TURN_SECONDS / 4, fails=True) if each != "|") == "0123"
