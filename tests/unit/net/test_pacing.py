"""Rates: no more than allowed, nothing lost, reading stopped while bytes wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.net.pacing import Flow, Pace, pace_of


class Source:
    """Stands for a transport that is read from."""

    reading = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return False


@given(st.integers(1, 10_000_000), st.lists(st.tuples(st.floats(0, 5), st.integers(1, 1_000_000)), max_size=40))
def test_no_more_goes_than_the_rate_allows(rate: int, asked: list[tuple[float, int]]) -> None:
    now = 0.0
    pace = Pace(rate, lambda: now)
    sent = 0
    for passed, wanted in asked:
        now += passed
        taken = pace.take(wanted)
        assert 0 <= taken <= wanted
        sent += taken
        assert sent <= max(1, rate * 0.1) + rate * now + 1


@pytest.mark.parametrize("rate", [1, 7, 1000, 10**9])
def test_waiting_as_told_gets_on(rate: int) -> None:
    now = 0.0
    pace = Pace(rate, lambda: now)
    pace.take(10**12)
    assert pace.take(10) == 0 or rate > 10**6
    now += pace.seconds_to_wait + 1e-6
    assert pace.take(10) >= 1


async def test_a_flow_stops_reading_until_its_bytes_are_gone() -> None:
    now = 0.0
    written: list[bytes] = []
    source = Source()
    asked: Any = source
    flow = Flow(asked, written.append, Pace(1000, lambda: now))
    flow.feed(b"x" * 150)
    assert (b"".join(written), source.reading) == (b"x" * 100, False)
    flow.congest()
    now = 1.0
    while len(b"".join(written)) < 150:
        await asyncio.sleep(0)
    assert not source.reading
    flow.clear()
    assert source.reading
    flow.feed(b"y" * 200)
    flow.end()
    assert len(b"".join(written)) == 200  # what waited is given up with the connection


async def test_without_a_rate_all_goes_at_once() -> None:
    written: list[bytes] = []
    source: Any = Source()
    flow = Flow(source, written.append, pace_of(0))
    flow.feed(b"x" * 10**6)
    assert len(written[0]) == 10**6


async def test_data_is_spread_and_whole() -> None:
    pace = pace_of(100_000)
    assert pace is not None
    begin = asyncio.get_running_loop().time()
    parts = [part async for part in pace.spread(bytes(range(256)) * 100)]
    assert b"".join(parts) == bytes(range(256)) * 100
    assert asyncio.get_running_loop().time() - begin >= 0.15  # 25,600 bytes, of which 10,000 were saved up
