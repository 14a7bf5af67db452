"""Group commit: many writes, one statement, one transaction, one fsync.

Every time a thread enters SQLite it gives the interpreter's lock away, and a busy event loop may keep it for
milliseconds before the thread gets on. Reading each key's state, writing each row and committing would pay that
price dozens of times (measured: 200 writes/s instead of 10,000 beside a saturated loop). So the newest revision of
every live key is kept in memory (`Heads`), a batch is decided against it, and all granted rows go into one INSERT
that commits by itself and writes nothing unless the store still stands at the revision that the decision was made
for.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from pilothouse.net.eager import Prompt
from pilothouse.storage.backends.contract import Conflict, Event, KeyExists, KeyValue, StorageError

MAX_BATCH = 256

Row = tuple[int, str, "int | None", int, int, int, "int | None", bytes]
Statement = tuple[str, list[object]]
Heads = dict[str, int]
"""The newest revision of every live key."""

_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, MAX_BATCH)
_PADDING = (None,) * 8


def _insert(size: int) -> str:
    # Starts with INSERT, or Python would not report how many rows were written.
    rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * size)
    return f"""
INSERT INTO log (revision, key, created, previous, deleted, expires, value)
SELECT column1, column2, COALESCE(column3, (SELECT created FROM log WHERE revision = column4)), column5, column6,
column7, column8 FROM (VALUES {rows})
WHERE column1 IS NOT NULL AND (SELECT COALESCE(MAX(revision), 1) FROM log) = ?
"""


_INSERTS = {size: _insert(size) for size in _SIZES}


@dataclass(slots=True, eq=False)
class QueuedWrite:
    """A create (`expected` 0), an update, or a delete (`value` None) on its way to the writer's thread."""

    key: str
    value: bytes | None
    expected: int
    ttl_seconds: int | None = None
    origin: object = None
    result: Prompt[int] | None = None


@dataclass(slots=True)
class Plan:
    """What a batch of writes amounts to when it follows `base`: rows to append, new heads, events and answers."""

    base: int
    revision: int
    rows: list[Row] = field(default_factory=list)
    heads: dict[str, int | None] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    results: list[tuple[Prompt[int], int | StorageError]] = field(default_factory=list)


def plan_writes(
    read: Callable[[int], KeyValue | None], writes: Sequence[QueuedWrite], heads: Heads, base: int, now: float
) -> Plan:
    """Decide write by write, against the heads and the writes before it; a refusal costs the others nothing.

    ``read`` gives what a refused write ran into, by its revision.
    """
    plan = Plan(base, base)
    created: dict[str, int] = {}
    for write in writes:
        key = write.key
        current = plan.heads[key] if key in plan.heads else heads.get(key)
        refusal = _refuse(read, write, current, plan)
        if refusal is not None:
            if write.result is not None:
                plan.results.append((write.result, refusal))
            continue
        plan.revision += 1
        _grant(plan, write, current, heads, created, now)
    return plan


def statement_of(plan: Plan) -> Statement:
    """What writes the plan's rows, of which there has to be one, unless the store has moved on from the plan's base."""
    size = _SIZES[bisect_left(_SIZES, len(plan.rows))]
    values: list[object] = list(chain.from_iterable(plan.rows))
    values += _PADDING * (size - len(plan.rows))
    values.append(plan.base)
    return _INSERTS[size], values


def append(connection: sqlite3.Connection, statement: Statement) -> bool:
    """Write rows; False when the store had moved on, and nothing was written."""
    return connection.execute(*statement).rowcount > 0


def settle_heads(heads: Heads, plan: Plan) -> None:
    for key, revision in plan.heads.items():
        if revision is None:
            heads.pop(key, None)
        else:
            heads[key] = revision


def _grant(
    plan: Plan, write: QueuedWrite, current: int | None, heads: Heads, created: dict[str, int], now: float
) -> None:
    key, revision, value = write.key, plan.revision, write.value
    if current is None:
        created[key] = revision
    expires = None if write.ttl_seconds is None else int(now + write.ttl_seconds + 0.999)
    plan.rows.append(
        (revision, key, created.get(key), heads.get(key, 0), current or 0, value is None, expires, value or b"")
    )
    plan.events.append(Event(key, revision, value, current is None, None, write.origin))
    plan.heads[key] = None if value is None else revision
    if write.result is not None:
        plan.results.append((write.result, revision))


def _refuse(
    read: Callable[[int], KeyValue | None], write: QueuedWrite, current: int | None, plan: Plan
) -> StorageError | None:
    if write.expected == 0:
        return None if current is None else KeyExists(write.key, current)
    if current == write.expected:
        return None
    return Conflict(write.key, write.expected, _state(read, write.key, current, plan))


def _state(read: Callable[[int], KeyValue | None], key: str, revision: int | None, plan: Plan) -> KeyValue | None:
    """The state that a refused write ran into: from the batch itself, or from the log."""
    if revision is None:
        return None
    if revision > plan.base:
        row = plan.rows[revision - plan.base - 1]
        return KeyValue(key, row[7], revision, row[2] or 0)
    return read(revision)
