import asyncio

import pytest

from pilothouse.machinery.single_flight import SingleFlight


class Source:
    """Something slow to ask."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def fetch(self) -> str:
        self.asked += 1
        return await self.answer


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_all_who_ask_get_the_one_result_and_later_ones_a_new_one() -> None:
    source, flights = Source(), SingleFlight[str, str]("test")
    asking = asyncio.gather(*(flights.get("a", source.fetch) for _ in range(3)))
    await settle()
    assert "a" in flights
    source.answer.set_result("x")
    assert await asking == ["x", "x", "x"]
    assert source.asked == 1
    assert "a" not in flights
    assert await flights.get("a", source.fetch) == "x"
    assert source.asked == 2


async def test_all_who_ask_hear_of_the_error() -> None:
    source, flights = Source(), SingleFlight[str, str]("test")
    asking = asyncio.gather(*(flights.get("a", source.fetch) for _ in range(2)), return_exceptions=True)
    await settle()
    source.answer.set_exception(ValueError("bad"))
    assert [str(each) for each in await asking] == ["bad", "bad"]
    assert source.asked == 1


async def test_who_gives_up_does_not_break_it_off_for_the_others() -> None:
    source, flights = Source(), SingleFlight[str, str]("test")
    first, second = (asyncio.ensure_future(flights.get("a", source.fetch)) for _ in range(2))
    await settle()
    first.cancel()
    await settle()
    source.answer.set_result("x")
    assert await second == "x"
    assert first.cancelled()


async def test_an_error_that_nobody_waits_for_any_more_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    source, flights = Source(), SingleFlight[str, str]("test")
    asking = asyncio.ensure_future(flights.get("a", source.fetch))
    await settle()
    asking.cancel()
    await settle()
    source.answer.set_exception(ValueError("bad"))
    await settle()
    assert "test: failed after all who asked had gone" in caplog.text
    assert "ValueError: bad" in caplog.text


async def test_closing_breaks_off_what_is_under_way() -> None:
    source, flights = Source(), SingleFlight[str, str]("test")
    asking = asyncio.ensure_future(flights.get("a", source.fetch))
    await settle()
    await flights.close()
    await asyncio.wait([asking])
    assert asking.cancelled()
    assert "a" not in flights
    await flights.close()
