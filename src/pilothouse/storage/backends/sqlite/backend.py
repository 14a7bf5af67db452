"""The contract on SQLite: puts together the writer's thread, the readers, the live feed and background upkeep."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from pilothouse.machinery.lock_turns import take_short_turns
from pilothouse.machinery.supervision import Supervised, Supervisor
from pilothouse.machinery.workers import aside
from pilothouse.net.eager import Prompt
from pilothouse.net.settling import Settling
from pilothouse.storage.backends.contract import (
    Event,
    Follower,
    History,
    KeyValue,
    Page,
    StorageError,
    Unavailable,
)
from pilothouse.storage.backends.live_feeds import LiveFeed, LiveFeeds
from pilothouse.storage.backends.sqlite import compaction
from pilothouse.storage.backends.sqlite.clock import StoreClock
from pilothouse.storage.backends.sqlite.damage import ADVICE, examine
from pilothouse.storage.backends.sqlite.known_log import Outcome
from pilothouse.storage.backends.sqlite.placement import Placement
from pilothouse.storage.backends.sqlite.readers import Readers
from pilothouse.storage.backends.sqlite.reading import count_keys, read_history, read_key, read_page
from pilothouse.storage.backends.sqlite.retention import Retention, RetentionClock
from pilothouse.storage.backends.sqlite.schema import compacted_revision
from pilothouse.storage.backends.sqlite.writer import Task, Writer
from pilothouse.storage.backends.sqlite.writing import MAX_BATCH, QueuedWrite
from pilothouse.storage.backends.watching import watch_log

logger = logging.getLogger(__name__)
T = TypeVar("T")


class SQLiteBackend:
    """One SQLite file as an ordered log. See `contract.Backend` for what each method promises."""

    name = "sqlite"

    def __init__(
        self,
        path: str,
        *,
        retention: Retention = Retention(),  # noqa: B008 - immutable
        upkeep_seconds: float = 1.0,
        poll_seconds: float = 0.05,
        readers: int = 2,
        clock: Callable[[], float] | None = None,
        examine_after: float = 0.0,
        supervisor: Supervisor | None = None,
    ) -> None:
        """``examine_after`` so many seconds the file is looked through in the background; never for 0."""
        self._supervisor = supervisor or Supervisor("store")
        self._path, self._clock, self._examine_after = path, StoreClock(clock), examine_after
        self._upkeep_seconds, self._poll_seconds, self._reader_count = upkeep_seconds, poll_seconds, readers
        self._retention = RetentionClock(retention)
        self._feeds = LiveFeeds(path)
        self._settling: Settling[int] = Settling()
        self._revision = 0
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._upkeep: Supervised | None = None
        self._seen_revision = 0
        self._placement = Placement(path)
        self._misplaced = ""

    @property
    def error(self) -> str:
        """Why the store cannot be used just now; empty if it can."""
        if self._writer is None:
            return "the store is not open"
        return self._misplaced or self._writer.log.trouble

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    async def open(self) -> None:
        """Open or create the file. Raises UnusableStore, Unavailable."""
        loop = asyncio.get_running_loop()
        take_short_turns()
        writer = Writer(self._path, loop, self._deliver, self._clock, self._poll_seconds)
        self._revision = await writer.start()
        self._writer = writer
        self._readers = Readers(self._path, loop, self._reader_count)
        self._placement = Placement(self._path)
        await self._look_for_files()
        if self._upkeep_seconds > 0:
            self._upkeep = self._supervisor.run("upkeep of the store", self._keep_up)

    async def close(self) -> None:
        writer, readers, upkeep = self._writer, self._readers, self._upkeep
        if writer is None or readers is None:
            return
        self._writer = self._readers = self._upkeep = None
        if upkeep is not None:
            await upkeep.stop()
        await readers.stop()
        await writer.stop()
        self._feeds.fail(Unavailable(f"{self._path} is closed"))

    # The three are no coroutines of their own: each would be one more to go through when a write is done.

    def create(
        self, key: str, value: bytes, ttl_seconds: int | None = None, origin: object = None
    ) -> Coroutine[Any, Any, int]:
        return self._write(QueuedWrite(key, value, 0, ttl_seconds, origin))

    def update(
        self, key: str, value: bytes, expected: int, ttl_seconds: int | None = None, origin: object = None
    ) -> Coroutine[Any, Any, int]:
        return self._write(QueuedWrite(key, value, expected or -1, ttl_seconds, origin))

    def delete(self, key: str, expected: int, origin: object = None) -> Coroutine[Any, Any, int]:
        return self._write(QueuedWrite(key, None, expected or -1, None, origin))

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        return await self._read(lambda connection: read_key(connection, key, revision))

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        return await self._read(lambda connection: read_page(connection, prefix, start, limit, revision, counted))

    async def count(self, prefix: str) -> int:
        return await self._read(lambda connection: count_keys(connection, prefix))

    async def history(self, prefix: str, after: int, limit: int = 1000) -> History:
        return await self._read(lambda connection: read_history(connection, prefix, after, limit))

    def follow(self, follower: Follower) -> LiveFeed:
        self._require_writer()
        return self._feeds.add(follower, self._revision)

    def watch(self, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
        return watch_log(self, prefix, after)

    async def current_revision(self) -> int:
        return await self._perform(self._require_writer().log.synchronise)

    def foresee(self) -> None:
        return None

    def unseen_revision(self) -> int | None:
        return self._require_writer().log.foreign_revision()

    async def compact(self, revision: int) -> None:
        await self._perform(lambda connection: compaction.mark_compacted(connection, revision))
        while await self._perform(compaction.sweep_slice):
            pass
        while await self._perform(compaction.return_pages):
            pass
        await self._perform(compaction.cut_log)

    async def compacted_revision(self) -> int:
        return await self._read(compacted_revision)

    async def maintain(self) -> None:
        """One round of upkeep: expire keys whose time is over, notice other processes, forget old history."""
        log = self._require_writer().log
        while await self._perform(log.expire) == MAX_BATCH:
            pass
        if log.trouble:
            await self._perform(log.probe)
        revision = await self.current_revision()
        if self._clock.is_due and revision != self._seen_revision:
            await self._perform(self._clock.remember)
            self._seen_revision = revision
        target = self._retention.due(self._clock(), revision)
        if target > await self.compacted_revision():
            await self.compact(target)

    async def _keep_up(self) -> None:
        examined = self._examine_after <= 0
        started = self._clock()
        while True:
            if not examined and self._clock() - started >= self._examine_after:
                examined = True
                await aside(self._examine)
            await asyncio.sleep(self._upkeep_seconds)
            try:
                await self._look_for_files()
                await self.maintain()
            except StorageError as error:
                logger.warning("upkeep of %s failed and will be tried again: %s", self._path, error)

    async def _look_for_files(self) -> None:
        """Nothing is written where it would be lost."""
        found = await self._read(lambda connection: self._placement.look())
        if found and not self._misplaced:
            logger.error("%s: %s; nothing is written until it is back, or after a restart", self._path, found)
        self._misplaced = found

    def _examine(self) -> None:
        """Look through the whole file, and say what is wrong with it."""
        try:
            report = examine(self._path)
        except StorageError as error:
            logger.warning("%s could not be examined: %s", self._path, error)
            return
        if report.is_sound:
            return
        for key in report.unreadable:
            logger.error("%s in %s cannot be read; %s", key, self._path, ADVICE)
        for finding in report.findings:
            logger.error("%s is damaged: %s; %s", self._path, finding, ADVICE)

    async def _write(self, write: QueuedWrite) -> int:
        if not write.key.isascii():
            try:
                write.key.encode()
            except UnicodeEncodeError:
                raise StorageError(f"key {write.key!a} is not valid text") from None
        if self._misplaced:
            raise Unavailable(f"{self._misplaced}: nothing was written")
        writer = self._require_writer()
        result: Prompt[int] = Prompt(loop=writer.loop)  # which a future would have to ask the system for
        write.result = result
        writer.write(write)
        try:
            return await result
        finally:
            # Both have the error, whose traceback has this frame and all before it: in a cycle, what the request worked
            # on would stay until cycles are looked for.
            del result, write

    async def _perform(self, action: Callable[[sqlite3.Connection], T]) -> T:
        writer = self._require_writer()
        result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        writer.perform(Task(action, result))
        return await result

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        if self._readers is None:
            raise Unavailable(f"{self._path} is closed")
        return await self._readers.run(read)

    def _require_writer(self) -> Writer:
        if self._writer is None:
            raise Unavailable(f"{self._path} is closed")
        return self._writer

    def _deliver(self, outcome: Outcome) -> None:
        """Followers first, then the writers: who awaited a write finds it in every cache."""
        if outcome.events:
            self._revision = outcome.revision
            self._feeds.deliver(outcome.events, outcome.revision)
        self._settling.add(outcome.results)
