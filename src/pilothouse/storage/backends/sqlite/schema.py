"""The database file: its tables, how connections to it are set up, and the checks that it is really ours.

`log` holds one row per revision and is only appended to; compaction removes rows that were superseded. A row names
the revision it replaced (`previous`, 0 for none), which is all that compaction and watches need to find it. The
newest row is never removed, so the highest row number is the store's revision.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat

from pilothouse.storage.backends.contract import FIRST_REVISION, UnusableStore

APPLICATION_ID = 0x50484F55
SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 5000
PAGE_BYTES = 4096
LOG_BYTES_KEPT = 16 << 20
PAGES_AT_MOST = 4000
"""How long the write-ahead log becomes before SQLite copies it by itself; `checkpoints.py` does so much earlier."""

_TABLES = f"""
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    created INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    expires INTEGER,
    value BLOB NOT NULL
);
CREATE INDEX log_by_key ON log (key, revision, deleted);
CREATE INDEX log_by_expiry ON log (expires) WHERE expires IS NOT NULL;
CREATE TABLE bounds (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO bounds VALUES ('compacted', 0), ('swept', 0);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""

CURRENT_REVISION = f"SELECT COALESCE(MAX(revision), {FIRST_REVISION}) FROM log"
COMPACTED_REVISION = "SELECT revision FROM bounds WHERE name = 'compacted'"


def connect_writer(path: str) -> sqlite3.Connection:
    """Open the file for writing, creating it readable for its owner only. Raises UnusableStore when it is not ours."""
    _create_file(path)
    connection = _connect(path)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: str) -> sqlite3.Connection:
    """Open another connection to a prepared file, for reading only."""
    connection = _connect(path)
    connection.execute("PRAGMA query_only = ON")
    return connection


def current_revision(connection: sqlite3.Connection) -> int:
    return int(connection.execute(CURRENT_REVISION).fetchone()[0])


def compacted_revision(connection: sqlite3.Connection) -> int:
    return int(connection.execute(COMPACTED_REVISION).fetchone()[0])


def _create_file(path: str) -> None:
    # A file that is there is not opened: closing it would give up the locks of all this process's connections to it.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from None
        if mode & 0o077:
            os.chmod(path, 0o600)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION_ID and (tables or application):
        raise UnusableStore(f"{path} is a database of another program")
    if version > SCHEMA_VERSION:
        raise UnusableStore(f"{path} was written by a newer version (schema {version} > {SCHEMA_VERSION})")
    if not tables:
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES_AT_MOST}")
    connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_KEPT}")
    if not tables:
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
