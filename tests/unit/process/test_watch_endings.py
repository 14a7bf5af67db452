from __future__ import annotations

from pilothouse.process.watch_endings import end_watches


class Watch:
    def __init__(self, ended: list[float], clock: list[float]) -> None:
        self._ended, self._clock = ended, clock

    def end(self) -> None:
        self._ended.append(self._clock[0])


async def ended_at(count: int, seconds: float) -> list[float]:
    clock, ended = [0.0], list[float]()

    async def sleep(more: float) -> None:
        clock[0] += more

    await end_watches([Watch(ended, clock) for _ in range(count)], seconds, sleep)
    return ended


async def test_all_at_once_without_time() -> None:
    assert await ended_at(1000, 0) == [0.0] * 1000


async def test_two_hundred_a_second_are_the_least() -> None:
    ended = await ended_at(100, 60)
    assert len(ended) == 100
    assert 0.4 <= ended[-1] <= 0.5


async def test_many_are_spread_over_the_time() -> None:
    ended = await ended_at(10_000, 10)
    assert len(ended) == 10_000
    assert 9.5 <= ended[-1] <= 10
    assert 4900 <= sum(when < 5 for when in ended) <= 5100
