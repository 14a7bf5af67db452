"""Looking now and then whether files that flags name have changed, or there is anything else to do after a while.

Each poller is supervised work of its own: one that fails is started again and does not keep the others from looking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from pilothouse.machinery.supervision import Supervisor

Poll = Callable[[], Awaitable[None]]


class FilePolling:
    """Polls every ``seconds`` once started, until closed."""

    def __init__(self, supervisor: Supervisor, seconds: float, pollers: Mapping[str, Poll]) -> None:
        self._supervisor, self._seconds, self._pollers = supervisor, seconds, pollers

    def start(self) -> None:
        """Look for the first time when the interval is over."""
        for name, poll in self._pollers.items():
            self._supervisor.run(name, lambda poll=poll: self._repeat(poll))  # type: ignore[misc]

    async def close(self) -> None:
        """Look no more."""
        await self._supervisor.close()

    async def _repeat(self, poll: Poll) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            await poll()
