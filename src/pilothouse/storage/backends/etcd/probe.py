"""Whether etcd answers: asked now and then, so that a health check has its answer at once.

As in kube-apiserver a question may take a given time, and there are at most two of them in that time. What it finds
is about the whole cluster: the question is a linearizable read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pilothouse.storage.backends.contract import StorageError

Check = Callable[[float], Awaitable[None]]
"""Raises StorageError unless there is an answer in so many seconds."""


class Probe:
    """The result of the last question. `run` is its work and goes on until it is cancelled."""

    def __init__(self, check: Check, seconds: float) -> None:
        self._check, self._seconds = check, seconds
        self.error = "etcd client connection not yet established"
        """Nothing when all is well."""

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            await self.ask()
            await asyncio.sleep(self._seconds / 2)

    async def ask(self) -> None:
        """Ask once."""
        try:
            await self._check(self._seconds)
        except StorageError as error:
            self.error = f"error getting data from etcd: {error}"
        else:
            self.error = ""
