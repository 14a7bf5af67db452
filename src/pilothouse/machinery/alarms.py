"""Calls that happen later: the event loop's own, behind a type that a test's clock can stand in for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Alarm(Protocol):
    """A call that will happen."""

    def cancel(self) -> None: ...


Delay = Callable[[float, Callable[[], None]], Alarm]
"""Calls back after some seconds; the event loop's ``call_later``, or a test's own clock."""


def loop_delay(seconds: float, call: Callable[[], None]) -> Alarm:
    """Wait on the running event loop."""
    return asyncio.get_running_loop().call_later(seconds, call)


async def sleep_by(delay: Delay, seconds: float) -> None:
    """Wait by whatever makes such calls."""
    over = asyncio.Event()
    alarm = delay(seconds, over.set)
    try:
        await over.wait()
    finally:
        alarm.cancel()
