"""Forgetting superseded rows and giving their disk space back, in steps small enough that writers hardly notice.

Timeline of a compaction at revision C: (1) the bound `compacted` moves to C, and older reads are refused from then
on; (2) the rows up to C are swept in slices: each row's predecessor goes, and so do deletions themselves; `swept`
remembers how far, so that a crash costs nothing; (3) free pages are returned to the file system in slices; (4) the
write-ahead log is emptied and cut. Each step is one short transaction on the writer's thread.
"""

from __future__ import annotations

import sqlite3

from pilothouse.storage.backends.contract import FutureRevision
from pilothouse.storage.backends.sqlite.schema import BUSY_TIMEOUT_MS, compacted_revision, current_revision

SLICE_REVISIONS = 500
SLICE_PAGES = 200


def mark_compacted(connection: sqlite3.Connection, revision: int) -> None:
    """Refuse reads below a revision from now on."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        current = current_revision(connection)
        if revision > current:
            raise FutureRevision(revision, current)
        if revision > compacted_revision(connection):
            connection.execute("UPDATE bounds SET revision = ? WHERE name = 'compacted'", (revision,))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def sweep_slice(connection: sqlite3.Connection) -> bool:
    """Remove some of the rows that were superseded at or before the compacted revision; False when nothing is left."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        compacted, first = compacted_revision(connection), _swept(connection)
        if first >= compacted:
            connection.execute("ROLLBACK")
            return False
        # The row at `swept` is looked at a second time: a deletion that was the newest row had to stay the first time.
        last = min(first + SLICE_REVISIONS, compacted)
        connection.execute(
            "DELETE FROM log WHERE revision IN "
            "(SELECT previous FROM log WHERE revision BETWEEN ? AND ? AND previous > 0)",
            (first, last),
        )
        connection.execute(
            "DELETE FROM log WHERE revision BETWEEN ? AND ? AND deleted AND revision < (SELECT MAX(revision) FROM log)",
            (first, last),
        )
        connection.execute("UPDATE bounds SET revision = ? WHERE name = 'swept'", (last,))
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return last < compacted


def return_pages(connection: sqlite3.Connection) -> bool:
    """Shorten the file by some free pages; False when none are left."""
    connection.execute(f"PRAGMA incremental_vacuum({SLICE_PAGES})").fetchall()
    return bool(connection.execute("PRAGMA freelist_count").fetchone()[0])


def cut_log(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log into the database and cut it to nothing, unless a reader is in the way just now."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def _swept(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT revision FROM bounds WHERE name = 'swept'").fetchone()[0])
