"""A few threads with a read connection each, so that listings and history never wait for writers nor block the loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from pilothouse.storage.backends.contract import StorageError, Unavailable
from pilothouse.storage.backends.sqlite.schema import connect_reader
from pilothouse.storage.backends.sqlite.threads import join, reject, resolve

logger = logging.getLogger(__name__)
T = TypeVar("T")
_Job = tuple[Callable[[sqlite3.Connection], Any], "asyncio.Future[Any]"]


class Readers:
    """Runs reads on its threads. Threads start with the first read and end with `stop`."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._path, self._loop, self._count = path, loop, count
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._ended: list[asyncio.Future[None]] = []
        self._busy = 0

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Run a read on a connection of its own. Raises what it raises; database errors as Unavailable."""
        result: asyncio.Future[T] = self._loop.create_future()
        self._busy += 1
        if self._busy > len(self._threads) < self._count:
            self._start_thread()
        self._queue.put((read, result))
        try:
            return await result
        finally:
            self._busy -= 1

    async def stop(self) -> None:
        for _ in self._threads:
            self._queue.put(None)
        await asyncio.gather(*self._ended)
        for thread in self._threads:
            await join(thread)
        self._threads.clear()

    def _start_thread(self) -> None:
        ended: asyncio.Future[None] = self._loop.create_future()
        self._ended.append(ended)
        thread = threading.Thread(target=self._serve, args=(ended,), name="pilothouse-sqlite-reader", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _serve(self, ended: asyncio.Future[None]) -> None:
        connection: sqlite3.Connection | None = None
        while (job := self._queue.get()) is not None:
            read, future = job
            try:
                if connection is None:
                    connection = connect_reader(self._path)
                self._post(resolve, future, read(connection))
            except StorageError as error:
                self._post(reject, future, error)
            except Exception as error:
                logger.error("%s cannot be read: %s", self._path, error)
                self._post(reject, future, Unavailable(f"the store cannot be read: {error}"))
            # An idle thread must not keep a big answer alive.
            del job, read, future
        if connection is not None:
            connection.close()
        self._post(resolve, ended, None)

    def _post(self, function: Callable[..., None], *arguments: object) -> None:
        # Without a loop there is nobody left who could want to know.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)
