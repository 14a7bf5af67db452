"""Moves the write-ahead log into the database beside the writer, so that a commit waits for one short sync and no more.

Left to itself, SQLite copies a thousand pages and syncs the database within whichever commit comes to that number, and
lets the log's file grow under commits. On a disk that others use as well, a sync that has to record a new size takes
milliseconds, one of bytes that were there before a tenth of one. So:

- the log's file is lengthened ahead of what is written, by zeros, which to SQLite are no frames;
- a thread copies what has gathered and syncs the database, while commits go on behind it;
- the writer copies the few pages that came meanwhile, between two commits. Only then, when the database has
  everything, does SQLite begin the log from its start again.

Timeline: `wrote` counts pages → at PAGES_GATHERED `keep_up` wakes the thread, which copies, syncs, and copies what
came meanwhile → `keep_up` (the writer) finds that little is left, and finishes. Where the thread is kept from it, by a
reader that looks at an old state for long, the log grows, and SQLite tries by itself at each commit beyond
PAGES_AT_MOST.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from contextlib import ExitStack, closing, suppress
from typing import Final

from pilothouse.storage.backends.sqlite.schema import PAGE_BYTES, connect_reader
from pilothouse.storage.backends.sqlite.shared_files import SharedFile

logger = logging.getLogger(__name__)
PAGES_GATHERED: Final = 1000
"""How many pages have come when it is time to copy them: SQLite's own number."""
FEW_PAGES: Final = 100
"""What the writer may copy between two commits: less than a millisecond."""
_TRIES: Final = 3
_STEP_BYTES: Final = 1 << 20
_LONGEST_BYTES: Final = 6 << 20
"""Room for what gathers, and for what comes while it is copied."""
_COPY: Final = "PRAGMA wal_checkpoint(PASSIVE)"


class Checkpoints:
    """See the module's docstring. All methods but `wrote`, `_run` and `_copy` are called on the writer's thread.

    `wrote` is called wherever a batch ends, which may be on the loop while the thread keeps up with what came before:
    what is counted may then be a batch too little or too much.
    """

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path, self._connection = path, connection
        self._database = SharedFile.open(path)
        self._gathered = 0
        """About how many pages came since the thread was last told to copy."""
        self._position = 0
        """About how far the log is written, in bytes, since it was begun from its start."""
        self._length = 0
        """How long the log's file is at least."""
        self._is_nearly_done = False
        self._is_stopping = False
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def wrote(self, rows: int, size: int) -> bool:
        """That many rows with so many bytes were committed; whether there is something to do, before others write."""
        pages = 2 + rows + size // PAGE_BYTES
        self._gathered += pages
        self._position += pages * PAGE_BYTES
        return self._is_nearly_done or self._gathered >= PAGES_GATHERED or self._is_too_short

    def keep_up(self) -> None:
        """Do what there is to do."""
        if self._is_too_short:
            self._lengthen()
        if self._is_nearly_done:
            self._finish()
        elif self._gathered >= PAGES_GATHERED:
            self._gathered = 0
            self._copy_aside()

    @property
    def _is_too_short(self) -> bool:
        return self._position + _STEP_BYTES // 2 > self._length < _LONGEST_BYTES

    def look(self) -> None:
        """Something else was done than to commit rows: the log may have been cut."""
        with suppress(OSError):
            length = os.stat(self._path + "-wal").st_size
            if length < self._length:
                self._length, self._position = length, 0

    def close(self) -> None:
        """End the thread; before the writer's connection is closed."""
        self._is_stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._database.close()

    def _lengthen(self) -> None:
        """Add zeros to the log's file, while nobody else can write to it."""
        with suppress(sqlite3.Error, OSError):  # then it grows as it is written
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._length = _lengthened(self._path + "-wal", self._position + _STEP_BYTES // 2)
            finally:
                self._connection.execute("ROLLBACK")

    def _copy_aside(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="pilothouse-sqlite-checkpoints", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system has no thread left; the next time it may have
                logger.warning("%s-wal is not copied aside: %s", self._path, error)
                return
            self._thread = thread
        self._wake.set()

    def _finish(self) -> None:
        self._is_nearly_done = False
        with suppress(sqlite3.Error):  # the thread tries again
            _, pages, copied = self._connection.execute(_COPY).fetchone()
            if pages == copied:
                self._position = 0

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        with ExitStack() as opened:
            while True:
                self._wake.wait()
                self._wake.clear()
                if self._is_stopping:
                    return
                try:
                    if connection is None:
                        connection = opened.enter_context(closing(connect_reader(self._path)))
                    self._copy(connection)
                except (sqlite3.Error, OSError) as error:
                    logger.warning("%s-wal cannot be copied into the database yet: %s", self._path, error)

    def _copy(self, connection: sqlite3.Connection) -> None:
        """Copy and sync what there is, and again what came meanwhile, until it is little."""
        connection.execute(_COPY).fetchone()
        for _ in range(_TRIES):
            os.fdatasync(self._database.descriptor)
            _, pages, copied = connection.execute(_COPY).fetchone()
            if pages - copied <= FEW_PAGES:
                self._is_nearly_done = True
                return


def _lengthened(path: str, wanted: int) -> int:
    """Make the file as long as wanted, in whole steps; returns how long it is."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(file).st_size
        end = min(-(-wanted // _STEP_BYTES) * _STEP_BYTES, _LONGEST_BYTES)
        if length < end:
            os.pwrite(file, bytes(end - length), length)
        return max(length, end)
    finally:
        os.close(file)
