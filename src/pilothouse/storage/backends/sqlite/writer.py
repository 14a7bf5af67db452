"""The thread that does all writing of this process, and the only source of its live events.

Two who fight for the interpreter's lock wake each other up all the time (measured: a third of a create's cost). So the
thread is given one thing at a time, and what comes meanwhile waits for its end on the event loop: the writes of that
time are one transaction then. Only where the last write was alone until it was done, as those of a single client are,
the next one goes at once and not at the end of the loop's turn. And the loop, which has the lock, decides what a batch
amounts to and makes the statement; the thread executes it, without the lock, and hands the end back in one call.

What is known of the store (`_heads`, `_seen`) belongs to the loop while the thread has nothing to do, and else to the
thread. Rows that other processes wrote are found when a batch meets an unexpected revision, or when the beacon shows
one, and are handed over first, so the loop receives every revision of the store once and in order. A transaction that
fails fails its writes with a clear error; the thread lives on.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from pilothouse.net.eager import Prompt
from pilothouse.storage.backends.contract import Event, Full, KeyValue, StorageError, Unavailable, UnusableStore
from pilothouse.storage.backends.sqlite.beacon import Beacon, beacon_of
from pilothouse.storage.backends.sqlite.checkpoints import Checkpoints
from pilothouse.storage.backends.sqlite.clock import StoreClock
from pilothouse.storage.backends.sqlite.committer import MOST_BYTES, PATIENCE_SECONDS, Committer
from pilothouse.storage.backends.sqlite.damage import ADVICE, look
from pilothouse.storage.backends.sqlite.reading import read_events, read_heads, read_revision
from pilothouse.storage.backends.sqlite.schema import connect_writer, current_revision
from pilothouse.storage.backends.sqlite.threads import join, reject, resolve
from pilothouse.storage.backends.sqlite.writing import (
    MAX_BATCH,
    Heads,
    Plan,
    QueuedWrite,
    Statement,
    append,
    plan_writes,
    settle_heads,
    statement_of,
)

logger = logging.getLogger(__name__)
# A long turn hands over its first part, so that committing it overlaps with making the next.
_MAX_GATHERED = 32
_ENOUGH_ROOM = 16 << 20
_EXPIRED = """
SELECT key, revision FROM log AS l WHERE expires <= ?
AND NOT EXISTS (SELECT 1 FROM log AS n WHERE n.key = l.key AND n.revision > l.revision) ORDER BY expires LIMIT ?
"""


_PROBE = "INSERT INTO bounds VALUES ('probed', 0) ON CONFLICT (name) DO UPDATE SET revision = revision + 1"
_NO_ROOM = "the disk that keeps the objects is full"


def is_full(error: Exception) -> bool:
    """Whether something failed for want of room on the disk."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL


@dataclass(slots=True)
class Outcome:
    """What the loop is told after a commit: how far the store is, what happened, and who is to be answered what."""

    revision: int
    events: list[Event]
    results: list[tuple[Prompt[int], int | StorageError]]


@dataclass(slots=True, eq=False)
class Task:
    """Something else to do on the writer's thread and connection, between two batches."""

    action: Callable[[sqlite3.Connection], object]
    result: asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class Batch:
    """Writes of one transaction, decided already unless that takes a look into the database."""

    writes: list[QueuedWrite]
    plan: Plan | None
    statement: Statement | None
    """What writes the plan's rows; None where there are none."""
    is_doubtful: bool = False
    """Whether it may have been executed already, by a process that died."""


class _NeedsReading(Exception):
    """A write is refused for a state that only the database has."""


class Writer:
    """See the module's docstring. `deliver` is called on the loop with the outcome of each batch."""

    def __init__(
        self,
        path: str,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Outcome], None],
        clock: StoreClock,
        poll_seconds: float,
    ) -> None:
        self._path, self.loop, self._deliver, self._clock, self._poll = path, loop, deliver, clock, poll_seconds
        self._queue: SimpleQueue[Batch | Task | None] = SimpleQueue()
        self._is_busy = False
        """Whether the thread has something to do."""
        self._waiting: deque[list[QueuedWrite] | Task | None] = deque()
        """What it is to do next, in its order; writes that come one after the other together."""
        self._is_due = False
        """Whether the next is handed over at the end of this turn."""
        self._under_way = 0
        self._is_lone = False
        """Whether the last write was alone from its beginning to its end."""
        self._thread = threading.Thread(target=self._run, name="pilothouse-sqlite-writer", daemon=True)
        self._ready: asyncio.Future[int] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._connection: sqlite3.Connection
        self._beacon: Beacon | None = None
        self._checkpoints: Checkpoints
        self._committer = Committer(path, loop, self._committed)
        self._committing: Batch | None = None
        """What the other process has been given."""
        self._observed: Batch | None = None
        self._observed_since = 0.0
        self._heads: Heads = {}
        self._seen = 0
        self.trouble = ""
        """Why the last write failed, if it was not the write's fault, and nothing could be written since."""

    async def start(self) -> int:
        """Open the database; returns its revision. Raises UnusableStore, Unavailable."""
        self._thread.start()
        try:
            return await self._ready
        except StorageError:
            await join(self._thread)
            raise

    async def stop(self) -> None:
        """Finish all that was asked for and close the database."""
        self._waiting.append(None)
        self._hand_over()
        await self._stopped
        await join(self._thread)

    def write(self, write: QueuedWrite) -> None:
        """Commit this soon, with the other writes of this turn of the loop; its result tells when."""
        self._under_way += 1
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, list) and len(last) < MAX_BATCH:
            last.append(write)
        else:
            last = [write]
            self._waiting.append(last)
        if self._is_busy:
            return
        if (self._is_lone and self._under_way == 1) or len(last) >= _MAX_GATHERED:
            self._hand_over()
        else:
            self._hand_over_soon()

    def perform(self, task: Task) -> None:
        """Do this after all that was asked before."""
        self._waiting.append(task)
        self._hand_over()

    def _hand_over_soon(self) -> None:
        """At the end of this turn, together with what it still brings."""
        if not self._is_due:
            self._is_due = True
            self.loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Give the thread what is to be done next, unless it has something to do."""
        self._is_due = False
        if self._waiting and not self._is_busy:
            item = self._waiting.popleft()
            if isinstance(item, list):
                self._commit_by_anyone(self._batch_of(item))
            else:
                if item is None:
                    self._committer.close()
                self._queue.put(item)
            self._is_busy = True

    def _commit_by_anyone(self, batch: Batch) -> None:
        """Have it committed by the process beside us, if there is one and the batch is short, or else by the thread."""
        committer, statement = self._committer, batch.statement
        if committer.is_ready and statement is not None and _size(batch) <= MOST_BYTES and committer.send(statement):
            self._committing = batch
        else:
            self._queue.put(batch)

    def _committed(self, is_written: bool | None) -> None:
        """The process beside us has written what it was given, or not, or may have; called on the loop."""
        batch, self._committing = self._committing, None
        assert batch is not None
        assert batch.plan is not None
        if is_written:
            plan = batch.plan
            if self._checkpoints.wrote(len(plan.events), _size(batch)):
                self._waiting.appendleft(self._task(self._keep_up))
            self._finish(plan, len(batch.writes))
        else:
            batch.is_doubtful = is_written is None
            self._queue.put(batch)

    def _task(self, action: Callable[[sqlite3.Connection], object]) -> Task:
        """Something that nobody waits for."""
        return Task(action, self.loop.create_future())

    def _keep_up(self, _: sqlite3.Connection) -> None:
        self._checkpoints.keep_up()

    def _start_committer(self, _: sqlite3.Connection) -> None:
        self._post(self._committer.connect, self._committer.start())

    def _batch_of(self, writes: list[QueuedWrite]) -> Batch:
        try:
            plan = plan_writes(_read_nothing, writes, self._heads, self._seen, self._clock())
        except _NeedsReading:
            return Batch(writes, None, None)
        return Batch(writes, plan, statement_of(plan) if plan.rows else None)

    def foreign_revision(self) -> int:
        """The newest revision that another process may have acknowledged; called on the loop."""
        return 0 if self._beacon is None else self._beacon.newest_foreign()

    def synchronise(self, connection: sqlite3.Connection) -> int:
        """Hand over what other processes wrote; returns the newest revision."""
        current = current_revision(connection)
        if current > self._seen:
            events = read_events(connection, "", self._seen, current)
            for event in events:
                if event.value is None:
                    self._heads.pop(event.key, None)
                else:
                    self._heads[event.key] = event.revision
            self._seen = current
            self._post(self._deliver, Outcome(current, events, []))
        return self._seen

    def expire(self, connection: sqlite3.Connection) -> int:
        """Delete keys whose time is over; returns how many."""
        rows = connection.execute(_EXPIRED, (self._clock(), MAX_BATCH)).fetchall()
        if rows:
            plan = self._transact([QueuedWrite(key, None, revision) for key, revision in rows])
            self._settle(plan)
            self._post(self._deliver, Outcome(plan.revision, plan.events, []))
        return len(rows)

    def probe(self, connection: sqlite3.Connection) -> None:
        """Find out whether writing works and there is room again, by writing.

        It has to be something new: SQLite writes no page that stays as it is.
        """
        connection.execute(_PROBE)
        disk = os.statvfs(self._path)
        self.trouble = _NO_ROOM if disk.f_bavail * disk.f_frsize < _ENOUGH_ROOM else ""

    def _run(self) -> None:
        try:
            self._open()
        except BaseException as error:
            self._post(reject, self._ready, error)
            return
        self._post(resolve, self._ready, self._seen)
        running = True
        while running:
            running = self._turn()
        self._committer.wait()
        self._checkpoints.close()
        self._connection.close()
        self._require_beacon().close()
        self._beacon = None
        self._post(resolve, self._stopped, None)

    def _open(self) -> None:
        with ExitStack() as undoing:
            try:
                os.makedirs(os.path.dirname(os.path.abspath(self._path)), mode=0o700, exist_ok=True)
                beacon = beacon_of(self._path)
                undoing.callback(beacon.close)
                with beacon.joining():
                    self._connection = connect_writer(self._path)
                undoing.callback(self._connection.close)
                if findings := look(self._connection):
                    raise UnusableStore(f"{self._path} is damaged: {findings[0]}; {ADVICE}")
                self._clock.recall(self._connection)
                self._connection.execute("BEGIN")
                self._seen = current_revision(self._connection)
                self._heads = read_heads(self._connection)
                self._connection.execute("COMMIT")
                self._checkpoints = Checkpoints(self._path, self._connection)
            except sqlite3.OperationalError as error:
                raise Unavailable(f"cannot open {self._path}: {error}") from error
            except sqlite3.DatabaseError as error:
                raise UnusableStore(f"{self._path} is not a usable database: {error}; {ADVICE}") from error
            except OSError as error:
                raise UnusableStore(f"cannot open {self._path}: {error.strerror}") from error
            undoing.pop_all()
        self._beacon = beacon

    def _turn(self) -> bool:
        """Wait for work and do it; False when the writer is to stop."""
        try:
            item = self._queue.get(timeout=self._poll)
        except Empty:
            self._look_after_committer()
            if self._require_beacon().newest_foreign() > self._seen:
                self._post(self._catch_up)
            return True
        if isinstance(item, Batch):
            self._commit(item)
        elif item is not None:
            self._execute(item)
        return item is not None

    def _catch_up(self) -> None:
        """Other processes have written; called on the loop."""
        if not self._waiting and not self._is_busy:
            self.perform(self._task(self._look_around))

    def _look_after_committer(self) -> None:
        """End the process beside us when it is silent for too long: what it was given comes to us then."""
        now = time.monotonic()
        if self._committing is None or self._committing is not self._observed:
            self._observed, self._observed_since = self._committing, now
        elif now - self._observed_since > PATIENCE_SECONDS:
            self._committer.kill()

    def _look_around(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):  # it is looked for again
            self.synchronise(connection)

    def _commit(self, batch: Batch) -> None:
        writes = batch.writes
        try:
            plan = batch.plan
            if batch.is_doubtful:
                self._committer.wait()
            if plan is None or not (
                (batch.is_doubtful and self._was_written(plan)) or self._is_written(batch.statement, plan)
            ):
                plan = self._transact(writes)
        except Exception as error:
            self._abandon()
            problem = self._problem("written to", error)
            plan = Plan(self._seen, self._seen)  # nothing that would have to be settled
            plan.results.extend((write.result, problem) for write in writes if write.result is not None)
        is_due = bool(plan.events) and self._checkpoints.wrote(len(plan.events), _size(batch))
        self._post(self._finish, plan, len(writes))
        if is_due:
            self._checkpoints.keep_up()

    def _finish(self, plan: Plan, count: int) -> None:
        """Writes are done; called on the loop."""
        self._settle(plan)
        self._is_busy = False
        self._under_way -= count
        self._is_lone = count == 1 and not self._under_way
        if self._committer.is_worth_it():
            self._waiting.append(self._task(self._start_committer))
        if self._waiting:
            self._hand_over_soon()
        self._deliver(Outcome(plan.revision, plan.events, plan.results))

    def _settle(self, plan: Plan) -> None:
        """Know what was written, and have others know it before anybody is told."""
        settle_heads(self._heads, plan)
        self._seen = plan.revision
        self._require_beacon().show(plan.revision)

    def _is_written(self, statement: Statement | None, plan: Plan) -> bool:
        """Write what was planned; False when the store has moved on from what it was planned for."""
        # Refusals need the same certainty as rows: that nobody else has written since the heads were known.
        if statement is None:
            return current_revision(self._connection) == plan.base
        return append(self._connection, statement)

    def _was_written(self, plan: Plan) -> bool:
        """Whether the plan's rows are there.

        Another server may have written under these numbers meanwhile. If that was the very same (both deleted an object
        that both had seen), then nobody can tell, and ours may be taken for done as well as theirs.
        """
        rows = read_events(self._connection, "", plan.base, plan.revision)
        return [(row.revision, row.key, row.value) for row in rows] == [
            (event.revision, event.key, event.value) for event in plan.events
        ]

    def _transact(self, writes: list[QueuedWrite]) -> Plan:
        """The slow way, after another process has written or for what only the database knows."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        self.synchronise(connection)
        plan = plan_writes(partial(read_revision, connection), writes, self._heads, self._seen, self._clock())
        if plan.rows:
            append(connection, statement_of(plan))
        connection.execute("COMMIT")
        return plan

    def _abandon(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _execute(self, task: Task) -> None:
        try:
            result = task.action(self._connection)
        except StorageError as error:
            self._post(self._performed, reject, task.result, error)
        except Exception as error:
            self._abandon()
            self._post(self._performed, reject, task.result, self._problem("used", error))
        else:
            self._post(self._performed, resolve, task.result, result)
        self._checkpoints.look()

    def _performed(
        self, tell: Callable[[asyncio.Future[Any], Any], None], future: asyncio.Future[Any], what: Any
    ) -> None:
        """A task is done; called on the loop."""
        self._is_busy = False
        tell(future, what)
        self._hand_over()

    def _problem(self, what: str, error: Exception) -> Unavailable:
        """What clients are told of a failure: not where the file is."""
        if is_full(error):
            self.trouble = _NO_ROOM
            return Full(f"{_NO_ROOM}: nothing was written")
        logger.error("%s cannot be %s: %s", self._path, what, error)
        told = f"the store cannot be {what}: {error}"
        if isinstance(error, sqlite3.OperationalError | OSError) or type(error) is sqlite3.DatabaseError:
            self.trouble = told
        return Unavailable(told)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        # Without a loop there is nobody left who could want to know.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *arguments)

    def _require_beacon(self) -> Beacon:
        assert self._beacon is not None
        return self._beacon


def _read_nothing(revision: int) -> KeyValue | None:
    """In place of a look into the database, for which the loop has no time."""
    raise _NeedsReading


def _size(batch: Batch) -> int:
    """Of the keys and values of a batch, in bytes."""
    return sum(len(write.key) + len(write.value or b"") for write in batch.writes)
