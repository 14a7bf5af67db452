"""What is wrong with a database file: found quickly when it is opened, thoroughly in the background, told by name.

    look(connection)     as much as a second allows: does the file hang together
    examine(path)        all of it: every page, every index, every value; which keys cannot be read
    repair(path)         all that can be read, in a new file; the damaged one is kept beside it
    snapshot(path, to)   a copy of one moment, also while servers use the file

Damage to a value costs one object. Damage to the tree that leads to values may hide any number of them, so a store that
does not hang together is not served: it could say that objects are gone that are only out of reach.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Final

from pilothouse.storage.backends.contract import Unavailable, UnusableStore
from pilothouse.storage.backends.sqlite.schema import connect_reader, connect_writer

ADVICE: Final = (
    "`pilothouse store check` tells what is affected; `pilothouse store repair` saves what can be read into a new file"
)
_LOOK_SECONDS: Final = 2.0
_STEPS: Final = 100_000
_MOST_FINDINGS: Final = 100
_COLUMNS: Final = "revision, key, created, previous, deleted, expires, value"
_NEWEST: Final = "SELECT key, MAX(revision), deleted FROM log INDEXED BY log_by_key GROUP BY key"


@dataclass(slots=True)
class Report:
    """What was found."""

    findings: list[str] = field(default_factory=list)
    """What the database says about its pages and indexes."""
    unreadable: list[str] = field(default_factory=list)
    """The keys of objects whose newest state cannot be read."""
    objects: int = 0
    """How many objects there are."""

    @property
    def is_sound(self) -> bool:
        return not self.findings and not self.unreadable


def look(connection: sqlite3.Connection) -> list[str]:
    """What shows at once of a database that does not hang together; nothing if none of it was seen in time."""
    ends = time.monotonic() + _LOOK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > ends, _STEPS)
    try:
        return _findings(connection, "PRAGMA quick_check(10)")
    except sqlite3.OperationalError:
        return []  # there was not enough time; the background has more
    except sqlite3.DatabaseError as error:
        return [str(error)]
    finally:
        connection.set_progress_handler(None, 0)


def examine(path: str) -> Report:
    """Look at everything. Raises Unavailable for a file that cannot be opened at all."""
    if not os.path.exists(path):
        raise Unavailable(f"{path} does not exist")
    report = Report()
    try:
        with closing(connect_reader(path)) as connection:
            try:
                report.findings = _findings(connection, f"PRAGMA integrity_check({_MOST_FINDINGS})")
            except sqlite3.DatabaseError as error:
                report.findings = [str(error)]
            _read_all(connection, report)
    except sqlite3.OperationalError as error:
        raise Unavailable(f"cannot open {path}: {error}") from error
    except sqlite3.DatabaseError as error:
        report.findings.append(str(error))
    return report


def _findings(connection: sqlite3.Connection, question: str) -> list[str]:
    lines = [line for (text,) in connection.execute(question) for line in str(text).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


def _read_all(connection: sqlite3.Connection, report: Report) -> None:
    """Read the newest state of every key that the index knows."""
    for key, revision, deleted in connection.execute(_NEWEST).fetchall():
        if deleted:
            continue
        report.objects += 1
        try:
            row = connection.execute("SELECT key, value FROM log WHERE revision = ?", (revision,)).fetchone()
        except sqlite3.DatabaseError:
            row = None
        if row is None or row[0] != key or not isinstance(row[1], bytes):
            report.unreadable.append(key)


@dataclass(slots=True)
class Repaired:
    """What became of a file."""

    kept: int
    """How many states of objects are in the new file."""
    lost: list[str]
    """The keys whose newest state could not be read; they are in the new file as they were before, if at all."""
    old: str
    """Where the damaged file is now."""


def repair(path: str) -> Repaired:
    """Put all that can be read into a new file, which takes the place of the old one. No server may use it meanwhile.

    Revisions stay what they were, so that clients go on where they are. Raises UnusableStore when nothing can be read.
    """
    if not os.path.exists(path):
        raise Unavailable(f"{path} does not exist")
    made = f"{path}.repaired"
    _remove(made)
    with closing(connect_reader(path)) as damaged, closing(connect_writer(made)) as new:
        new.execute("PRAGMA synchronous = OFF")
        new.execute("BEGIN")
        rows = _salvage(damaged)
        kept, lost = 0, set[str]()
        for row in rows:
            if isinstance(row, str):
                lost.add(row)
                continue
            new.execute(f"INSERT OR REPLACE INTO log ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            kept += 1
        if not kept:
            new.execute("ROLLBACK")
            _remove(made)
            raise UnusableStore(f"nothing can be read from {path}")
        new.execute("UPDATE bounds SET revision = (SELECT MAX(revision) FROM log)")
        new.execute("COMMIT")
        new.execute("PRAGMA synchronous = FULL")
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    old = f"{path}.damaged-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}"
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(path + suffix, old + suffix)
    os.replace(path, old)
    os.replace(made, path)
    _remove(made)
    return Repaired(kept, sorted(lost), old)


def _salvage(damaged: sqlite3.Connection) -> Iterator[tuple[object, ...] | str]:
    """All rows, one by one: from the table, and past what cannot be read. The key alone where there is no more."""
    known: dict[int, str] = {}
    with suppress(sqlite3.DatabaseError):
        known = dict(damaged.execute("SELECT revision, key FROM log INDEXED BY log_by_key"))
    last = max(known, default=0)
    with suppress(sqlite3.DatabaseError):
        last = max(last, damaged.execute("SELECT MAX(revision) FROM log").fetchone()[0] or 0)
    candidates = sorted(known) if known else range(1, last + 1)
    for revision in candidates:
        try:
            row = damaged.execute(f"SELECT {_COLUMNS} FROM log WHERE revision = ?", (revision,)).fetchone()
        except sqlite3.DatabaseError:
            row = None
        if row is not None and isinstance(row[1], str) and isinstance(row[6], bytes):
            yield row
        elif revision in known:
            yield known[revision]


def snapshot(path: str, target: str) -> int:
    """Copy one moment of a store into a new file; its revision. Raises Unavailable and UnusableStore."""
    if not os.path.exists(path):
        raise Unavailable(f"{path} does not exist")
    if os.path.exists(target):
        raise Unavailable(f"{target} exists already")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(connect_reader(path)) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            if findings := _findings(copy, "PRAGMA quick_check(1)"):
                raise UnusableStore(f"{path} is damaged: {findings[0]}; {ADVICE}")
            return int(copy.execute("SELECT COALESCE(MAX(revision), 1) FROM log").fetchone()[0])
    except sqlite3.DatabaseError as error:
        _remove(target)
        raise Unavailable(f"cannot copy {path}: {error}") from error
    except UnusableStore:
        _remove(target)
        raise


def _remove(path: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.remove(path + suffix)
