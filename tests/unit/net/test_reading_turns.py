"""A crowd that says something in one moment is read from in its order, and others get their turn in between."""

from __future__ import annotations

import asyncio

from tests.unit.net.working_clock import Clock

from pilothouse.net.reading_turns import FEW, LONG_SECONDS, TRUSTED, TURN_SECONDS, ReadingTurns


class Connection:
    """Takes some time to read from."""

    def __init__(self, name: str, clock: Clock, seen: list[str], seconds: float) -> None:
        self._name, self._clock, self._seen, self._seconds = name, clock, seen, seconds
        self.credit = 0

    def read_late(self) -> None:
        self._clock.now += self._seconds
        self._seen.append(self._name)


async def turns_of(count: int, seconds: float) -> list[str]:
    """What happens when so many come in one turn, each of this length, and somebody else asks at every turn."""
    loop, clock = asyncio.get_running_loop(), Clock()
    seen: list[str] = []
    turns = ReadingTurns(loop, clock)
    for number in range(count):
        connection = Connection(str(number), clock, seen, seconds)
        if turns.admits(connection):
            connection.read_late()
    while len([each for each in seen if each != "|"]) < count:
        seen.append("|")
        await asyncio.sleep(0)
    return seen


def speak(turns: ReadingTurns, connection: Connection) -> bool:
    """Have something to say; whether it was read at once."""
    admitted = turns.admits(connection)
    if admitted:
        connection.read_late()
        turns.has_read(connection)
    return admitted


async def trusted(turns: ReadingTurns, clock: Clock, seen: list[str]) -> Connection:
    """A connection that has been brief for a while."""
    brief = Connection("brief", clock, seen, LONG_SECONDS / 2)
    for _ in range(TRUSTED):
        assert speak(turns, brief)
        await asyncio.sleep(0)
    seen.clear()
    return brief


def crowd(turns: ReadingTurns, clock: Clock, seen: list[str], count: int = FEW) -> None:
    for number in range(count):
        speak(turns, Connection(str(number), clock, seen, TURN_SECONDS))


async def test_a_few_are_read_from_at_once() -> None:
    assert await turns_of(FEW, 1.0) == [str(number) for number in range(FEW)]


async def test_many_that_are_quick_are_read_from_at_once() -> None:
    assert await turns_of(100, 0.0) == [str(number) for number in range(100)]


async def test_a_crowd_is_read_from_in_turns_and_in_its_order() -> None:
    seen = await turns_of(FEW + 5, TURN_SECONDS / 2)
    assert [each for each in seen if each != "|"] == [str(number) for number in range(FEW + 5)]
    assert "".join("|" if each == "|" else "x" for each in seen) == "x" * (FEW + 1) + "|xx|xx"


async def test_few_that_take_long_are_a_crowd() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    turns = ReadingTurns(loop, clock)
    for _ in range(3):
        long = Connection("long", clock, [], TURN_SECONDS * 0.75)
        assert turns.admits(long)
        long.read_late()
        turns.has_read(long)
    assert not turns.admits(long)


async def test_all_is_as_before_when_a_crowd_has_gone() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    turns = ReadingTurns(loop, clock)
    late = Connection("late", clock, [], TURN_SECONDS)
    for _ in range(FEW):
        assert turns.admits(late)
    clock.now += TURN_SECONDS
    assert not turns.admits(late)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert turns.admits(late)


async def test_those_who_wait_are_not_overtaken() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    seen: list[str] = []
    turns = ReadingTurns(loop, clock)
    for number in range(FEW + 3):
        connection = Connection(str(number), clock, seen, TURN_SECONDS)
        if turns.admits(connection):
            connection.read_late()
    await asyncio.sleep(0)
    newcomer = Connection("newcomer", clock, seen, 0.0)
    assert not turns.admits(newcomer)
    while len(seen) < FEW + 4:
        await asyncio.sleep(0)
    assert seen[-1] == "newcomer"


async def test_who_has_more_to_say_than_its_share_goes_on_in_the_next_turn_behind_the_others() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    turns = ReadingTurns(loop, clock)
    seen: list[str] = []

    class Talker(Connection):
        left = 3

        def read_late(self) -> None:
            super().read_late()
            self.left -= 1
            if self.left:
                turns.defer(self)

    for name in "abc":
        turns.defer(Talker(name, clock, seen, TURN_SECONDS / 2))
    while len([each for each in seen if each != "|"]) < 9:
        seen.append("|")
        await asyncio.sleep(0)
    assert "".join(seen) == "|ab|ca|bc|ab|c"


async def test_one_that_talks_alone_leaves_room_in_every_turn() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    turns = ReadingTurns(loop, clock)
    seen: list[str] = []

    class Talker(Connection):
        def read_late(self) -> None:
            super().read_late()
            turns.defer(self)

    turns.defer(Talker("a", clock, seen, TURN_SECONDS / 100))
    for _ in range(4):
        seen.append("|")
        await asyncio.sleep(0)
    assert "".join(seen) == "|a|a|a|a"


async def test_who_has_not_been_read_from_goes_before_those_that_have_more_to_say() -> None:
    loop, clock = asyncio.get_running_loop(), Clock()
    turns = ReadingTurns(loop, clock)
    seen: list[str] = []
    for name in "abc":
        turns.defer(Connection(name, clock, seen, TURN_SECONDS))
    clock.now += TURN_SECONDS
    assert not turns.admits(Connection("x", clock, seen, TURN_SECONDS))
    while len([each for each in seen if each != "|"]) < 4:
        seen.append("|")
        await asyncio.sleep(0)
    assert "".join(seen) == "|xa|b|c"


async def test_who_is_brief_goes_before_a_crowd() -> None:
    clock, seen = Clock(), list[str]()
    turns = ReadingTurns(asyncio.get_running_loop(), clock)
    brief = await trusted(turns, clock, seen)
    crowd(turns, clock, seen)
    await asyncio.sleep(0)
    assert speak(turns, brief)
    assert seen == ["0", "1", "2", "brief"]


async def test_a_stranger_waits_behind_a_crowd() -> None:
    clock, seen = Clock(), list[str]()
    turns = ReadingTurns(asyncio.get_running_loop(), clock)
    crowd(turns, clock, seen)
    await asyncio.sleep(0)
    assert not speak(turns, Connection("stranger", clock, seen, 0.0))


async def test_many_that_are_brief_leave_room_for_the_crowd_in_every_turn() -> None:
    clock, seen = Clock(), list[str]()
    turns = ReadingTurns(asyncio.get_running_loop(), clock)
    brief = [await trusted(turns, clock, seen) for _ in range(20)]
    crowd(turns, clock, seen, 4)
    await asyncio.sleep(0)
    at_once = [speak(turns, each) for each in brief]
    assert at_once.count(True) == TURN_SECONDS / (LONG_SECONDS / 2)
    await asyncio.sleep(0)
    assert seen[-1] == "3"


async def test_trust_is_lost_sooner_than_won() -> None:
    clock, seen = Clock(), list[str]()
    turns = ReadingTurns(asyncio.get_running_loop(), clock)
    brief = await trusted(turns, clock, seen)
    turns.admits(brief)
    clock.now += 2 * LONG_SECONDS
    turns.has_read(brief)
    assert brief.credit == TRUSTED // 2
    crowd(turns, clock, seen)
    await asyncio.sleep(0)
    assert not speak(turns, brief)
