"""Work on long texts is done in a thread: what takes seconds at the largest size must not hold up other requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pilothouse.machinery.workers import attempted

Result = TypeVar("Result")


async def offload(work: Callable[[bytes], Result], data: bytes) -> Result:
    """What ``work`` makes of the data: at once, or in a thread if that takes long. It must touch nothing shared."""
    return await attempted(len(data), work, data)
