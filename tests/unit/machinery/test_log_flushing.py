import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from pilothouse.machinery.log_flushing import LATE_SECONDS, LogFlushing
from pilothouse.machinery.supervision import RestartPolicy, Supervisor


class Handler(logging.Handler):
    """Counts how often it is flushed, and fails if told to."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed, self.broken = 0, False

    def emit(self, record: logging.LogRecord) -> None:
        """Nothing is kept."""

    def flush(self) -> None:
        self.flushed += 1
        if self.broken:
            raise OSError("no space left on device")


@pytest.fixture
def handler() -> Iterator[Handler]:
    handler = Handler()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    supervisor = Supervisor("test", policy=RestartPolicy(first_seconds=0.001, most_seconds=0.01))
    yield supervisor
    await supervisor.close()


async def test_a_log_that_is_flushed_is_well(handler: Handler, supervisor: Supervisor) -> None:
    now = 0.0
    flushing = LogFlushing(supervisor, clock=lambda: now)
    now = LATE_SECONDS + 1
    assert flushing.error() == "logging blocked: not flushed for 121 s"
    await flushing.flush()
    assert handler.flushed == 1
    assert flushing.error() == ""


async def test_a_log_that_cannot_be_flushed_shows(handler: Handler, supervisor: Supervisor) -> None:
    now = 0.0
    flushing, handler.broken = LogFlushing(supervisor, clock=lambda: now), True
    flushing.start()
    async with asyncio.timeout(120):
        while not supervisor.unhealthy():
            await asyncio.sleep(0.001)
    now = LATE_SECONDS + 1
    assert flushing.error()
    handler.broken = False
    async with asyncio.timeout(120):
        while flushing.error():
            await asyncio.sleep(0.001)
