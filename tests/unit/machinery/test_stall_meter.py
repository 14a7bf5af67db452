"""The meter sees who holds the loop, and is silent about a loop that merely waits."""

from __future__ import annotations

import asyncio
import time

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
