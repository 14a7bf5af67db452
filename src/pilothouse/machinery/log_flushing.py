"""Log handlers are flushed now and then, and a log that takes nothing any more shows.

What is behind a handler (a pipe that nobody reads, a disk that is full) can hold up whoever logs. So flushing is done
in a thread, and if it has not succeeded for two minutes, the log does not work.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from pilothouse.machinery.supervision import Supervisor

LATE_SECONDS: Final = 120.0


class LogFlushing:
    """Flushes the handlers of the root logger."""

    def __init__(
        self, supervisor: Supervisor, interval: float = 5.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._supervisor, self._interval, self._clock = supervisor, interval, clock
        self._flushed = clock()

    def start(self) -> None:
        """Begin, until the supervisor is closed."""
        self._supervisor.run("log flushing", self._run)

    def error(self) -> str:
        """Why the log does not work; empty if it does."""
        seconds = self._clock() - self._flushed
        return f"logging blocked: not flushed for {seconds:.0f} s" if seconds > LATE_SECONDS else ""

    async def flush(self) -> None:
        """Flush once."""
        await asyncio.to_thread(_flush)
        self._flushed = self._clock()

    async def _run(self) -> None:
        while True:
            await self.flush()
            await asyncio.sleep(self._interval)


def _flush() -> None:
    for handler in logging.getLogger().handlers:
        # A stream that its owner has closed has nothing left to flush, now or later.
        if not getattr(getattr(handler, "stream", None), "closed", False):
            handler.flush()
