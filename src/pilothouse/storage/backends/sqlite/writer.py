"""The thread that owns all writing of this process, and the only source of its live events.

The event loop enqueues writes; the thread takes all that wait, commits them together, and hands results and events back in
one call. Rows that other processes wrote are found at the start of each transaction (or when the beacon shows a revision not seen
yet) and are handed over first, so the loop receives every revision of the store once and in order.
A transaction that fails fails its writes with a clear error; the thread lives on.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from pilothouse.storage.backends.contract import StorageError, Unavailable
from pilothouse.storage.backends.sqlite.beacon import Beacon
from pilothouse.storage.backends.sqlite.reading import read_events
from pilothouse.storage.backends.sqlite.schema import connect_writer, current_revision
from pilothouse.storage.backends.sqlite.writing import MAX_BATCH, Outcome, Write, apply_writes

_EXPIRED = """
SELECT key, revision FROM log AS l WHERE expires <= ?
AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.key = l.key AND n.revision > l.revision) ORDER BY expires LIMIT ?
"""


@dataclass(slots=True, eq=False)
class Task:
    """Something else to do on the writer's thread and connection, between two batches."""

    action: Callable[[sqlite3.Connection], object]
    result: asyncio.Future[Any]


class Writer:
    """See the module's docstring. `deliver` is called on the loop with the outcome of each batch."""

    def __init__(
        self,
        path: str,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Outcome], None],
        clock: Callable[[], float],
        poll_seconds: float,
    ) -> None:
        self._path, self._loop, self._deliver, self._clock, self._poll = path, loop, deliver, clock, poll_seconds
        self._queue: SimpleQueue[Write | Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pilothouse-sqlite-writer", daemon=True)
        self._ready: asyncio.Future[int] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._connection: sqlite3.Connection
        self._beacon: Beacon | None = None
        self._seen = 0
        self._foreign = 0
        self._lit = 0

    async def start(self) -> int:
        """Open the database; returns its revision. Raises UnusableStore, Unavailable."""
        self._thread.start()
        try:
            return await self._ready
        except BaseException:
            self._thread.join()
            raise

    async def stop(self) -> None:
        """Finish all that was enqueued and close the database."""
        self._queue.put(None)
        await self._stopped
        self._thread.join()

    def enqueue(self, item: Write | Task) -> None:
        self._queue.put(item)

    def foreign_revision(self) -> int:
        """At least the newest revision that another process may have acknowledged; called on the loop."""
        beacon = self._beacon
        if beacon is None:
            return 0
        # In this order: the thread announces its own revision before it lights the beacon with it.
        shown = beacon.revision
        return self._foreign if shown == self._lit else shown

    def synchronise(self, connection: sqlite3.Connection) -> int:
        """Hand over what other processes wrote; returns the newest revision."""
        beacon = self._require_beacon()
        current = current_revision(connection)
        if current < beacon.revision:
            # Someone is about to commit, or died before: under the write lock the truth can be told.
            connection.execute("BEGIN IMMEDIATE")
            current = beacon.revision = current_revision(connection)
            connection.execute("COMMIT")
        if current > self._seen:
            outcome = Outcome(current, read_events(connection, "", self._seen, current))
            self._foreign = self._seen = current
            self._post(self._deliver, outcome)
        return self._seen

    def expire(self, connection: sqlite3.Connection) -> int:
        """Delete keys whose time is over; returns how many."""
        rows = connection.execute(_EXPIRED, (self._clock(), MAX_BATCH)).fetchall()
        if rows:
            self._commit([Write(key, None, revision) for key, revision in rows])
        return len(rows)

    def _run(self) -> None:
        try:
            self._open()
        except BaseException as error:
            self._post(_fail, self._ready, error)
            return
        self._post(_resolve, self._ready, self._seen)
        running = True
        while running:
            running = self._turn()
        self._connection.close()
        self._require_beacon().close()
        self._beacon = None
        self._post(_resolve, self._stopped, None)

    def _open(self) -> None:
        beacon = Beacon(self._path + "-revision")
        try:
            with beacon.opening():
                self._connection = connect_writer(self._path)
            self._connection.execute("BEGIN IMMEDIATE")
            self._seen = self._foreign = beacon.revision = current_revision(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            beacon.close()
            raise
        self._beacon = beacon

    def _turn(self) -> bool:
        """Wait for work and do all that is there; False when the writer is to stop."""
        try:
            item = self._queue.get(timeout=self._poll)
        except Empty:
            self._look_around()
            return True
        writes: list[Write] = []
        while isinstance(item, Write):
            writes.append(item)
            if len(writes) == MAX_BATCH:
                break
            try:
                item = self._queue.get_nowait()
            except Empty:
                break
        if writes:
            self._commit(writes)
        if isinstance(item, Task):
            self._execute(item)
        return item is not None

    def _look_around(self) -> None:
        if self._require_beacon().revision == self._seen:
            return
        try:
            self.synchronise(self._connection)
        except sqlite3.Error:
            self._abandon()

    def _commit(self, writes: list[Write]) -> None:
        try:
            outcome = self._transact(writes)
        except Exception as error:
            self._abandon()
            problem = Unavailable(f"cannot write to {self._path}: {error}")
            failures = [(write.result, problem) for write in writes if write.result is not None]
            outcome = Outcome(0, [], list[tuple[asyncio.Future[int], int | StorageError]](failures))
        self._post(self._deliver, outcome)

    def _transact(self, writes: list[Write]) -> Outcome:
        connection, beacon = self._connection, self._require_beacon()
        connection.execute("BEGIN IMMEDIATE")
        base = current_revision(connection)
        foreign = read_events(connection, "", self._seen, base) if base > self._seen else []
        outcome = apply_writes(connection, writes, base, self._clock())
        if base > self._seen:
            self._foreign = base
            outcome.events[:0] = foreign
        self._lit = outcome.revision
        beacon.revision = outcome.revision
        connection.execute("COMMIT")
        self._seen = outcome.revision
        return outcome

    def _abandon(self) -> None:
        """Undo what a failed transaction may have left: the transaction, and the revision it announced."""
        self._lit = 0
        try:
            if self._connection.in_transaction:
                self._require_beacon().revision = self._seen
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            return

    def _execute(self, task: Task) -> None:
        try:
            result = task.action(self._connection)
        except StorageError as error:
            self._post(_fail, task.result, error)
        except Exception as error:
            self._abandon()
            self._post(_fail, task.result, Unavailable(f"cannot use {self._path}: {error}"))
        else:
            self._post(_resolve, task.result, result)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            # The loop is gone, and with it everybody who could want to know.
            return

    def _require_beacon(self) -> Beacon:
        assert self._beacon is not None
        return self._beacon


def _resolve(future: asyncio.Future[Any], result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
