"""Many who greet at once are greeted one after the other, and others get their turn in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.unit.net.working_clock import Clock

from pilothouse.net.greetings import TURN_SECONDS, Greetings


async def turns_of(steps: int, seconds: float, fails: bool = False) -> list[str]:
    """What happens when so many steps come in one turn, each of this length, and somebody else asks at every turn."""
    loop, clock, seen = asyncio.get_running_loop(), Clock(), []
    loop.set_exception_handler(lambda loop, context: None)
    greetings = Greetings(loop, clock=clock)

    def step(number: int) -> Callable[[], None]:
        def work() -> None:
            clock.now += seconds
            seen.append(str(number))
            if fails:
                raise RuntimeError

        return work

    for number in range(steps):
        try:
            greetings.begin(step(number), "")
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


class Client:
    """Notes when it is greeted."""

    def __init__(self, greetings: Greetings, seen: list[str], name: str, address: str) -> None:
        self._seen, self._name = seen, name
        if name.endswith("again"):
            greetings.go_on(self._step, address)
        else:
            greetings.begin(self._step, address)

    def _step(self) -> None:
        self._seen.append(self._name)


async def order_of(*clients: tuple[str, str]) -> list[str]:
    """In which order clients are greeted who come in one turn: the name and address of each."""
    seen: list[str] = []
    greetings = Greetings(asyncio.get_running_loop(), clock=Clock())
    for name, address in clients:
        Client(greetings, seen, name, address)
    while len(seen) < len(clients):
        await asyncio.sleep(0)
    return seen


async def test_what_has_begun_is_finished_first() -> None:
    clients = ("one", "a"), ("two", "a"), ("three", "a"), ("one again", "a"), ("four", "b")
    assert await order_of(*clients) == ["one", "one again", "two", "four", "three"]


async def test_addresses_take_turns() -> None:
    crowd = [(f"crowd {number}", "crowd") for number in range(6)]
    assert await order_of(*crowd, ("b1", "b"), ("b2", "b"), ("c", "c")) == [
        *("crowd 0", "crowd 1", "b1", "c", "crowd 2", "b2", "crowd 3", "crowd 4", "crowd 5"),
    ]


async def test_nothing_is_begun_without_room() -> None:
    seen: list[str] = []
    greetings = Greetings(asyncio.get_running_loop(), lambda: len(seen) < room, Clock())
    room = 2
    for name in ("one", "two", "three", "four"):
        Client(greetings, seen, name, "a")
    while len(seen) < 2:
        await asyncio.sleep(0)
    Client(greetings, seen, "one again", "a")
    assert seen == ["one", "two", "one again"]
    await asyncio.sleep(0)
    room = 9
    greetings.resume()
    greetings.resume()
    while len(seen) < 5:
        await asyncio.sleep(0)
    assert seen[3:] == ["three", "four"]
