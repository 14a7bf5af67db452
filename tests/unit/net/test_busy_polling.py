"""A loop that expects input looks for it without sleeping, as long as that is worth it."""

import asyncio
import selectors
from collections.abc import Iterator
from typing import Any

import pytest

from pilothouse.net import busy_polling
from pilothouse.net.busy_polling import BusyPolling
from pilothouse.net.messages import Request, Response

SECONDS, TURNS = 10.0, 10
NONE = 4
"""So many turns pass at most where it does not look."""
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Turns(selectors.DefaultSelector):
    """Counts the turns until the loop would sleep, and has it go on then; a second of the clock passes with each."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.asleep: asyncio.Future[None] | None = None

    def select(self, timeout: float | None = None) -> Any:
        self.now += 1
        if timeout != 0 and self.asleep is not None:
            self.asleep.get_loop().call_soon(self.asleep.set_result, None)
            self.asleep, timeout = None, 0
        return super().select(timeout)

    async def until_asleep(self) -> int:
        began = self.now
        self.asleep = asyncio.get_running_loop().create_future()
        await self.asleep
        return int(self.now - began)


@pytest.fixture
def turns() -> Turns:
    return Turns()


@pytest.fixture
def loop(turns: Turns) -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.SelectorEventLoop(turns)
    yield loop
    loop.close()


@pytest.fixture
def polling(loop: asyncio.AbstractEventLoop, turns: Turns) -> BusyPolling:
    return BusyPolling(loop, SECONDS, processors=2, clock=lambda: turns.now)


def look(loop: asyncio.AbstractEventLoop, turns: Turns, polling: BusyPolling, come_after: int | None = None) -> int:
    """Expect something, which comes after so many turns or never; returns the turns until the loop slept."""

    async def expecting() -> int:
        began = turns.now
        polling.expect()
        if come_after is not None:
            for _ in range(come_after):
                await asyncio.sleep(0)
            polling.came()
        await turns.until_asleep()
        return int(turns.now - began)

    return loop.run_until_complete(expecting())


def test_it_does_not_sleep_until_the_time_is_over(
    loop: asyncio.AbstractEventLoop, turns: Turns, polling: BusyPolling
) -> None:
    assert look(loop, turns, polling) == pytest.approx(TURNS, abs=2)


def test_it_sleeps_once_there_was_input(loop: asyncio.AbstractEventLoop, turns: Turns, polling: BusyPolling) -> None:
    assert look(loop, turns, polling, come_after=2) <= NONE + 1
    assert look(loop, turns, polling, come_after=2) <= NONE + 1


def test_looks_in_vain_become_rare(
    loop: asyncio.AbstractEventLoop, turns: Turns, polling: BusyPolling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy_polling, "MOST_UNHEEDED", 16)
    looked = [look(loop, turns, polling) > NONE for _ in range(12)]
    assert looked == [True, False, True, False, False, True, False, False, False, False, True, False]
    looks = [number for number in range(100) if look(loop, turns, polling) > NONE]
    assert looks[-1] - looks[-2] == 16 + 1


def test_one_that_is_worth_it_makes_them_frequent_again(
    loop: asyncio.AbstractEventLoop, turns: Turns, polling: BusyPolling
) -> None:
    while look(loop, turns, polling) > NONE or look(loop, turns, polling) > NONE:
        pass
    for _ in range(8):  # one of them is looked for
        look(loop, turns, polling, come_after=2)
    looked = [look(loop, turns, polling) > NONE for _ in range(3)]
    assert looked == [True, False, True]


def test_several_expectations_are_one_look(loop: asyncio.AbstractEventLoop, turns: Turns, polling: BusyPolling) -> None:
    async def expecting() -> int:
        for _ in range(100):
            polling.expect()
        return await turns.until_asleep()

    assert loop.run_until_complete(expecting()) == pytest.approx(TURNS, abs=2)


def test_on_a_crowded_machine_it_sleeps_for_a_while(loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
    interrupted = 1000
    polling = BusyPolling(loop, SECONDS, 2, clock=lambda: turns.now, interruptions=lambda: interrupted)

    async def looks(crowded: bool) -> list[bool]:
        nonlocal interrupted
        looked = []
        for _ in range(busy_polling.LOOKS):
            interrupted += 2 * crowded
            polling.expect()
            looked.append(polling._is_looking)
            polling.came()
            await turns.until_asleep()
        return looked

    assert all(loop.run_until_complete(looks(False)) + loop.run_until_complete(looks(True)))
    after = busy_polling.CROWDED_UNHEEDED + 1
    assert not any(loop.run_until_complete(looks(False)))
    interrupted += 1000  # by whoever was there meanwhile
    for _ in range(after - busy_polling.LOOKS):
        polling.expect()
    assert all(loop.run_until_complete(looks(False)))


def test_the_only_processor_is_left_to_the_peer(loop: asyncio.AbstractEventLoop, turns: Turns) -> None:
    polling = BusyPolling(loop, SECONDS, processors=1, clock=lambda: turns.now)
    assert look(loop, turns, polling) <= NONE


async def test_clients_are_expected_to_go_on_after_an_answer(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(BusyPolling, "expect", lambda _: told.append("expect"))
    monkeypatch.setattr(BusyPolling, "came", lambda _: told.append("came"))

    async def handler(request: Request) -> Response:
        told.append("asked")
        return Response(200, b"")

    client = await (await serve(handler)).dial()
    for _ in range(2):
        client.send(GET)
        await client.answer()
    assert told == ["came", "asked", "expect"] * 2
