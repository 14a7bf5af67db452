"""Whether workers still answer: one whose event loop has stopped for a minute is killed, and another takes its place.

A process that has died is noticed by its end; one that hangs keeps its connections and answers nobody. It is asked now
and then for nothing in particular.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, Final, Protocol

logger = logging.getLogger(__name__)
QUESTION: Final = "pulse"
_EVERY_SECONDS: Final = 10.0
_PATIENCE_SECONDS: Final = 60.0


class Asked(Protocol):
    """A worker."""

    number: int
    is_ready: bool

    def ask(self, name: str) -> Awaitable[Any]:
        """Ask it something. Raises OSError."""
        ...

    def kill(self) -> None:
        """End its process at once."""


class Pulse:
    """Asks all workers for as long as it runs."""

    def __init__(
        self, workers: Sequence[Asked], every: float = _EVERY_SECONDS, patience: float = _PATIENCE_SECONDS
    ) -> None:
        self._workers, self._every, self._patience = workers, every, patience

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            await asyncio.sleep(self._every)
            await asyncio.gather(*(self._feel(worker) for worker in self._workers if worker.is_ready))

    async def _feel(self, worker: Asked) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await worker.ask(QUESTION)
        except TimeoutError:
            logger.error("worker %d has not answered for %g s and is killed", worker.number, self._patience)
            worker.kill()
        except OSError:
            return  # it has gone, which others see to
