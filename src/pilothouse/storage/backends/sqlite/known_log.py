"""The log in the database, and what this process knows of it: how far it is, and where each key stands.

What is known (`heads`, `seen`) belongs to the loop while the writer's thread has nothing to do, and else to the thread.
On the loop a batch is planned by it. On the thread the plan is executed, unless the store turns out to stand at another
revision: other processes have written. What they wrote is announced first, so that the loop receives every revision of
the store once and in order, and the batch is planned anew. A transaction that fails fails its writes with a clear
error; nothing else comes of it.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial

from pilothouse.net.eager import Prompt
from pilothouse.storage.backends.contract import Event, Full, KeyValue, StorageError, Unavailable, UnusableStore
from pilothouse.storage.backends.sqlite.beacon import Beacon, beacon_of
from pilothouse.storage.backends.sqlite.checkpoints import Checkpoints
from pilothouse.storage.backends.sqlite.clock import StoreClock
from pilothouse.storage.backends.sqlite.damage import ADVICE, look
from pilothouse.storage.backends.sqlite.reading import read_events, read_heads, read_revision
from pilothouse.storage.backends.sqlite.schema import connect_writer, current_revision
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
class Batch:
    """Writes of one transaction, decided already unless that takes a look into the database."""

    writes: list[QueuedWrite]
    plan: Plan | None
    statement: Statement | None
    """What writes the plan's rows; None where there are none."""
    is_doubtful: bool = False
    """Whether it may have been executed already, by a process that died."""

    @property
    def size(self) -> int:
        """Of the keys and values, in bytes."""
        return sum(len(write.key) + len(write.value or b"") for write in self.writes)


class _NeedsReading(Exception):
    """A write is refused for a state that only the database has."""


class KnownLog:
    """See the module's docstring. All but `plan`, `settle` and `foreign_revision` are for the writer's thread."""

    def __init__(self, path: str, clock: StoreClock, announce: Callable[[Outcome], None]) -> None:
        """``announce`` is told of what nobody here has asked for: what others wrote, what has expired."""
        self._path, self._clock, self._announce = path, clock, announce
        self.connection: sqlite3.Connection
        self.checkpoints: Checkpoints
        self._beacon: Beacon | None = None
        self._heads: Heads = {}
        self.seen = 0
        """The revision that is known of."""
        self.trouble = ""
        """Why the last write failed, if it was not the write's fault, and nothing could be written since."""

    def open(self) -> None:
        """Open the database, and read what stands in it. Raises UnusableStore, Unavailable."""
        with ExitStack() as undoing:
            try:
                os.makedirs(os.path.dirname(os.path.abspath(self._path)), mode=0o700, exist_ok=True)
                beacon = beacon_of(self._path)
                undoing.callback(beacon.close)
                with beacon.joining():
                    self.connection = connect_writer(self._path)
                undoing.callback(self.connection.close)
                if findings := look(self.connection):
                    raise UnusableStore(f"{self._path} is damaged: {findings[0]}; {ADVICE}")
                self._clock.recall(self.connection)
                self.connection.execute("BEGIN")
                self.seen = current_revision(self.connection)
                self._heads = read_heads(self.connection)
                self.connection.execute("COMMIT")
                self.checkpoints = Checkpoints(self._path, self.connection)
            except sqlite3.OperationalError as error:
                raise Unavailable(f"cannot open {self._path}: {error}") from error
            except sqlite3.DatabaseError as error:
                raise UnusableStore(f"{self._path} is not a usable database: {error}; {ADVICE}") from error
            except OSError as error:
                raise UnusableStore(f"cannot open {self._path}: {error.strerror}") from error
            undoing.pop_all()
        self._beacon = beacon

    def close(self) -> None:
        """Close the database."""
        self.checkpoints.close()
        self.connection.close()
        self._require_beacon().close()
        self._beacon = None

    def plan(self, writes: list[QueuedWrite]) -> Batch:
        """What writes amount to, as far as that is known without a look into the database."""
        try:
            plan = plan_writes(_read_nothing, writes, self._heads, self.seen, self._clock())
        except _NeedsReading:
            return Batch(writes, None, None)
        return Batch(writes, plan, statement_of(plan) if plan.rows else None)

    def settle(self, plan: Plan) -> None:
        """Know what was written, and have others know it before anybody is told."""
        settle_heads(self._heads, plan)
        self.seen = plan.revision
        self._require_beacon().show(plan.revision)

    def has_foreign(self) -> bool:
        """Whether other processes have shown a revision that is not known here."""
        return self._require_beacon().newest_foreign() > self.seen

    def foreign_revision(self) -> int:
        """The newest revision that another process may have acknowledged; called on the loop."""
        return 0 if self._beacon is None else self._beacon.newest_foreign()

    def synchronise(self, connection: sqlite3.Connection) -> int:
        """Hand over what other processes wrote; returns the newest revision."""
        current = current_revision(connection)
        if current > self.seen:
            events = read_events(connection, "", self.seen, current)
            for event in events:
                if event.value is None:
                    self._heads.pop(event.key, None)
                else:
                    self._heads[event.key] = event.revision
            self.seen = current
            self._announce(Outcome(current, events, []))
        return self.seen

    def expire(self, connection: sqlite3.Connection) -> int:
        """Delete keys whose time is over; returns how many."""
        rows = connection.execute(_EXPIRED, (self._clock(), MAX_BATCH)).fetchall()
        if rows:
            plan = self._transact([QueuedWrite(key, None, revision) for key, revision in rows])
            self.settle(plan)
            self._announce(Outcome(plan.revision, plan.events, []))
        return len(rows)

    def probe(self, connection: sqlite3.Connection) -> None:
        """Find out whether writing works and there is room again, by writing.

        It has to be something new: SQLite writes no page that stays as it is.
        """
        connection.execute(_PROBE)
        disk = os.statvfs(self._path)
        self.trouble = _NO_ROOM if disk.f_bavail * disk.f_frsize < _ENOUGH_ROOM else ""

    def commit(self, batch: Batch) -> Plan:
        """Write a batch; the plan that was carried out, whose results say so where it could not be."""
        plan = batch.plan
        try:
            if plan is None or not (
                (batch.is_doubtful and self._was_written(plan)) or self._is_written(batch.statement, plan)
            ):
                plan = self._transact(batch.writes)
        except Exception as error:
            self.abandon()
            problem = self.problem("written to", error)
            plan = Plan(self.seen, self.seen)  # nothing that would have to be settled
            plan.results.extend((write.result, problem) for write in batch.writes if write.result is not None)
        return plan

    def _is_written(self, statement: Statement | None, plan: Plan) -> bool:
        """Write what was planned; False when the store has moved on from what it was planned for."""
        # Refusals need the same certainty as rows: that nobody else has written since the heads were known.
        if statement is None:
            return current_revision(self.connection) == plan.base
        return append(self.connection, statement)

    def _was_written(self, plan: Plan) -> bool:
        """Whether the plan's rows are there.

        Another server may have written under these numbers meanwhile. If that was the very same (both deleted an object
        that both had seen), then nobody can tell, and ours may be taken for done as well as theirs.
        """
        rows = read_events(self.connection, "", plan.base, plan.revision)
        return [(row.revision, row.key, row.value) for row in rows] == [
            (event.revision, event.key, event.value) for event in plan.events
        ]

    def _transact(self, writes: list[QueuedWrite]) -> Plan:
        """The slow way, after another process has written or for what only the database knows."""
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        self.synchronise(connection)
        plan = plan_writes(partial(read_revision, connection), writes, self._heads, self.seen, self._clock())
        if plan.rows:
            append(connection, statement_of(plan))
        connection.execute("COMMIT")
        return plan

    def abandon(self) -> None:
        """Give up a transaction that is under way."""
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def problem(self, what: str, error: Exception) -> Unavailable:
        """What clients are told of a failure: not where the file is."""
        if is_full(error):
            self.trouble = _NO_ROOM
            return Full(f"{_NO_ROOM}: nothing was written")
        logger.error("%s cannot be %s: %s", self._path, what, error)
        told = f"the store cannot be {what}: {error}"
        if isinstance(error, sqlite3.OperationalError | OSError) or type(error) is sqlite3.DatabaseError:
            self.trouble = told
        return Unavailable(told)

    def _require_beacon(self) -> Beacon:
        assert self._beacon is not None
        return self._beacon


def _read_nothing(revision: int) -> KeyValue | None:
    """In place of a look into the database, for which the loop has no time."""
    raise _NeedsReading
