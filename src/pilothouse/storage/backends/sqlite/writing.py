"""Group commit: many writes, one transaction, one fsync.

`apply_writes` runs inside an open transaction. It reads the state of all keys concerned, decides write by write against that
state *and* the writes before it in the same batch, and appends one row for each that is granted. A refused write
(KeyExists, Conflict) costs the others nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from pilothouse.storage.backends.contract import Conflict, Event, KeyExists, KeyValue, StorageError

MAX_BATCH = 256

_STATE = "SELECT key, value, revision, created, deleted FROM log WHERE key = ? ORDER BY revision DESC LIMIT 1"
_ROW = "(?, ?, ?, ?, ?, ?, ?)"

Row = tuple[int, str, int, int, int, "int | None", bytes]


@dataclass(slots=True, eq=False)
class Write:
    """A create (`expected` 0), an update, or a delete (`value` None) on its way to the writer's thread."""

    key: str
    value: bytes | None
    expected: int
    ttl_seconds: int | None = None
    origin: object = None
    result: asyncio.Future[int] | None = None


@dataclass(slots=True)
class Outcome:
    """What became of a batch, to be told on the event loop after the commit."""

    revision: int
    events: list[Event] = field(default_factory=list)
    results: list[tuple[asyncio.Future[int], int | StorageError]] = field(default_factory=list)


def apply_writes(connection: sqlite3.Connection, writes: Sequence[Write], revision: int, now: float) -> Outcome:
    """Append the granted writes after `revision`, the store's newest, in the transaction that is open."""
    outcome = Outcome(revision)
    state: dict[str, KeyValue | None] = {}
    rows: list[Row] = []
    for write in writes:
        key = write.key
        if key not in state:
            state[key] = _read_state(connection, key)
        current = state[key]
        refusal = _refuse(write, current)
        if refusal is not None:
            if write.result is not None:
                outcome.results.append((write.result, refusal))
            continue
        outcome.revision = revision = outcome.revision + 1
        expires = None if write.ttl_seconds is None else int(now + write.ttl_seconds + 0.999)
        created = current.created if current else revision
        rows.append(
            (revision, key, created, current.revision if current else 0, write.value is None, expires, write.value or b"")
        )
        outcome.events.append(Event(key, revision, write.value, created, current, write.origin))
        state[key] = None if write.value is None else KeyValue(key, write.value, revision, created)
        if write.result is not None:
            outcome.results.append((write.result, revision))
    if rows:
        _append(connection, rows)
    return outcome


def _refuse(write: Write, current: KeyValue | None) -> StorageError | None:
    if write.expected == 0:
        return KeyExists(write.key, current.revision) if current else None
    if current is None or current.revision != write.expected:
        return Conflict(write.key, write.expected, current)
    return None


def _read_state(connection: sqlite3.Connection, key: str) -> KeyValue | None:
    row = connection.execute(_STATE, (key,)).fetchone()
    if row is None or row[4]:
        return None
    return KeyValue(row[0], row[1], row[2], row[3])


def _append(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    # One statement for all rows: every step of a statement gives the interpreter's lock away, and a busy
    # event loop may keep it for milliseconds each time.
    connection.execute("INSERT INTO log VALUES " + ", ".join([_ROW] * len(rows)), [value for row in rows for value in row])
