"""Ending the watches of clients when the server stops: not all at once where there is time.

Each client whose watch ends comes back, to another server or to the next one here. Spread over the grace period, they
do not come all in the same moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

_LEAST_A_SECOND: Final = 200
_STEPS_A_SECOND: Final = 20


class Ending(Protocol):
    """A watch."""

    def end(self) -> None:
        """Let it deliver what it has, and end."""


async def end_watches(
    watches: Sequence[Ending], seconds: float, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """End all, evenly within so many seconds, but no fewer than 200 a second; at once where there are none."""
    if seconds <= 0:
        for watch in watches:
            watch.end()
        return
    step = max(_LEAST_A_SECOND, len(watches) / seconds) / _STEPS_A_SECOND
    done = 0
    while done < len(watches):
        if done:
            await sleep(1 / _STEPS_A_SECOND)
        upto = done + max(1, round(step))
        for watch in watches[done:upto]:
            watch.end()
        done = upto
