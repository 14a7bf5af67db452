"""The meter sees who holds the loop, and is silent about a loop that merely waits."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from pilothouse.machinery.metrics import render
from pilothouse.machinery.stall_meter import StallMeter


def compute(seconds: float) -> None:
    """Use the processor, in pieces that show in a stack."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def hold_until_seen(meter: StallMeter) -> None:
    """Hold the loop, again if the meter's own thread was kept from looking."""
    async with asyncio.timeout(300):
        while meter.longest < 0.1:
            compute(0.4)
            await asyncio.sleep(0.05)


async def test_a_hold_is_measured_and_its_code_is_named() -> None:
    meter = StallMeter()
    meter.start()
    await hold_until_seen(meter)
    meter.stop()
    assert 0.1 < meter.longest < 1
    assert "compute" in meter.stack
    page = render(meter.instruments()).decode()
    assert "pilothouse_event_loop_hold_seconds_count 0" not in page
    assert "pilothouse_event_loop_hold_seconds_count " in page


async def test_many_short_turns_and_waiting_are_no_hold() -> None:
    meter = StallMeter()
    meter.start()
    for _ in range(100):
        compute(0.002)
        await asyncio.sleep(0)
    time.sleep(0.1)
    await asyncio.sleep(0.1)
    meter.stop()
    assert meter.longest < 0.1


class LoopThatGoesOn:
    """A loop that does much before it is asked, because whoever asks has to wait for a processor."""

    def __init__(self, before: float, after: float) -> None:
        self._spent, self._before, self._after = 0.0, before, after
        self._looked = threading.Event()

    def clock(self) -> float:
        spent = self._spent
        self._looked.set()
        return spent

    def call_soon_threadsafe(self, answer: Callable[[], Any]) -> None:
        self._spent += self._before

        def turn() -> None:
            self._looked.wait()
            self._spent += self._after
            answer()

        threading.Thread(target=turn).start()


@pytest.mark.parametrize(("after", "held"), [(0.0, 0.0), (0.03, 0.03)])
def test_turns_that_end_before_the_loop_is_asked_are_no_hold(after: float, held: float) -> None:
    """The meter's thread may be kept waiting between any two of its steps."""
    meter, loop = StallMeter(), LoopThatGoesOn(0.05, after)
    meter._time(cast(asyncio.AbstractEventLoop, loop), threading.get_ident(), loop.clock)
    assert round(meter.longest, 3) == held
