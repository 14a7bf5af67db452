"""Reads of the log: a key, a listing, a stretch of history; now or as of a revision, each in one consistent
snapshot.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.storage.backends.contract import Compacted, Event, FutureRevision, History, KeyValue, Page
from pilothouse.storage.backends.sqlite.damage import ADVICE
from pilothouse.storage.backends.sqlite.schema import compacted_revision, current_revision

logger = logging.getLogger(__name__)
_GET = """
SELECT key, value, revision, created, deleted FROM log
WHERE key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1
"""

_AT = "SELECT key, value, revision, created FROM log WHERE revision = ? AND NOT deleted"
_END = 2**62

# Goes through the index in key order and stops at the limit; only rows of the answer are fetched.
_LIST = """
SELECT key, value, revision, created FROM log AS l INDEXED BY log_by_key
WHERE key >= ? AND key < ? AND revision <= ? AND NOT deleted AND NOT EXISTS (
    SELECT 1 FROM log AS n INDEXED BY log_by_key
    WHERE n.key = l.key AND n.revision > l.revision AND n.revision <= ?
) ORDER BY key LIMIT ?
"""
_LIST_REVISIONS = _LIST.replace("key, value, revision, created", "key, revision", 1)
_NEWEST = """
SELECT key, MAX(revision) AS revision, deleted FROM log INDEXED BY log_by_key
WHERE key >= ? AND key < ? AND revision <= ? GROUP BY key
"""
_COUNT = f"SELECT COUNT(*) FROM ({_NEWEST}) WHERE NOT deleted"

_EVENTS = """
SELECT l.key, l.revision, l.deleted, l.value, l.created, p.value, p.revision, p.created
FROM log AS l LEFT JOIN log AS p ON p.revision = l.previous
WHERE l.revision > ? AND l.revision <= ? AND l.key >= ? AND l.key < ? ORDER BY l.revision LIMIT ?
"""


def prefix_end(prefix: str) -> str:
    """The first text after all that start with a prefix."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1) if prefix else chr(0x10FFFF)


def read_key(connection: sqlite3.Connection, key: str, revision: int) -> KeyValue | None:
    with _snapshot(connection, revision) as at:
        row = connection.execute(_GET, (key, at)).fetchone()
    if row is None or row[4]:
        return None
    return KeyValue(row[0], row[1], row[2], row[3])


def read_revision(connection: sqlite3.Connection, revision: int) -> KeyValue | None:
    """What a revision wrote, if the log still has it."""
    row = connection.execute(_AT, (revision,)).fetchone()
    return None if row is None else KeyValue(*row)


def read_heads(connection: sqlite3.Connection) -> dict[str, int]:
    """The newest revision of every live key."""
    return dict(
        connection.execute(f"SELECT key, revision FROM ({_NEWEST}) WHERE NOT deleted", ("", prefix_end(""), _END))
    )


def read_page(
    connection: sqlite3.Connection, prefix: str, start: str | None, limit: int, revision: int, counted: bool
) -> Page:
    first, end = max(prefix, start or ""), prefix_end(prefix)
    with _snapshot(connection, revision) as at:
        items = _read_items(connection, (first, end, at, at, limit + 1 if limit else -1))
        if not limit or len(items) <= limit:
            return Page(items, at, False, 0)
        following = items.pop().key
        remaining = connection.execute(_COUNT, (following, end, at)).fetchone()[0] if counted else -1
    return Page(items, at, True, remaining)


def _read_items(connection: sqlite3.Connection, question: tuple[object, ...]) -> list[KeyValue]:
    """The rows of a listing. Where some cannot be read all others are, one by one; what is left out is said."""
    try:
        return [KeyValue(*row) for row in connection.execute(_LIST, question).fetchall()]
    except sqlite3.DatabaseError:
        found = connection.execute(_LIST_REVISIONS, question).fetchall()
    items: list[KeyValue] = []
    for key, revision in found:
        try:
            row = connection.execute(_AT, (revision,)).fetchone()
        except sqlite3.DatabaseError as error:
            logger.error("%s cannot be read at revision %d and is left out: %s; %s", key, revision, error, ADVICE)
            continue
        if row is not None:
            items.append(KeyValue(*row))
    return items


def count_keys(connection: sqlite3.Connection, prefix: str) -> int:
    with _snapshot(connection, 0) as at:
        return int(connection.execute(_COUNT, (prefix, prefix_end(prefix), at)).fetchone()[0])


def read_history(connection: sqlite3.Connection, prefix: str, after: int, limit: int) -> History:
    with _snapshot(connection, 0) as current:
        _check(connection, after, current)
        events = read_events(connection, prefix, after, current, limit)
    return History(events, events[-1].revision if len(events) == limit else current)


def read_events(connection: sqlite3.Connection, prefix: str, after: int, until: int, limit: int = -1) -> list[Event]:
    rows = connection.execute(_EVENTS, (after, until, prefix, prefix_end(prefix), limit))
    return [_event(*row) for row in rows]


def _event(
    key: str,
    revision: int,
    deleted: int,
    value: bytes,
    created: int,
    old_value: bytes | None,
    old_revision: int,
    old_created: int,
) -> Event:
    previous = None if old_value is None else KeyValue(key, old_value, old_revision, old_created)
    return Event(key, revision, None if deleted else value, created == revision, previous)


@contextmanager
def _snapshot(connection: sqlite3.Connection, revision: int) -> Iterator[int]:
    """A read transaction and the revision to read at: the one asked for after checks, or the current one for 0."""
    connection.execute("BEGIN")
    try:
        current = current_revision(connection)
        if revision:
            _check(connection, revision, current)
        yield revision or current
    finally:
        connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, revision: int, current: int) -> None:
    if revision > current:
        raise FutureRevision(revision, current)
    compacted = compacted_revision(connection)
    if revision < compacted:
        raise Compacted(revision, compacted)
