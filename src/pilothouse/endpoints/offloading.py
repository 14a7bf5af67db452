"""Work on long texts is done in a thread: what takes seconds at the largest size must not hold up other requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

Result = TypeVar("Result")
LONG: Final = 32 * 1024


async def offload(work: Callable[[bytes], Result], data: bytes) -> Result:
    """What ``work`` makes of the data: at once, or in a thread if that may take long. It must touch nothing shared."""
    if len(data) < LONG:
        return work(data)
    return await asyncio.get_running_loop().run_in_executor(None, work, data)
