"""A word of shared memory beside the database that tells all processes the newest revision, without a system call.

A writer lights the beacon while it holds SQLite's write lock, just before it commits, so the word only goes backwards when a
commit fails. Whoever reads a revision that it has already seen knows that nobody has acknowledged a newer one; any other
value means "look into the database". The file also carries the lock that serialises opening the database.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

_SIZE = mmap.PAGESIZE


class Beacon:
    """The newest revision, in a memory-mapped file."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(self._file).st_size < _SIZE:
                os.ftruncate(self._file, _SIZE)
            self._memory = mmap.mmap(self._file, _SIZE)
        except BaseException:
            os.close(self._file)
            raise
        # One aligned machine word: stores and loads of it are atomic.
        self._word = memoryview(self._memory).cast("Q")

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Keep other processes from opening the database meanwhile."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    @property
    def revision(self) -> int:
        return self._word[0]

    @revision.setter
    def revision(self, revision: int) -> None:
        self._word[0] = revision

    def close(self) -> None:
        self._word.release()
        self._memory.close()
        os.close(self._file)
