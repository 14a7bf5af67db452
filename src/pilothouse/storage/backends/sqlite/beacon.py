"""A page of shared memory beside the database where each process shows the newest revision it has committed.

Every process owns one word and sets it after a commit and before it acknowledges the writes. So who finds no
foreign word above what it has seen itself knows, without a system call, that nobody else has acknowledged anything
newer; a higher word means "look into the database". With a single process there are no foreign words and nothing to
compare.

Claiming a word is serialised by a lock on the folder, which also serialises opening the database. A process that
finds itself alone starts with an empty page; otherwise it takes over the word of a dead process, or the next one
never used. Who has not joined sees all words as foreign ones: that is how a process looks at a store that it does not
write to itself.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager

_WORDS = mmap.PAGESIZE // 8
_SLOTS = _WORDS // 2 - 1
_USED = 0
_OWNERS = _WORDS // 2


class Beacon:
    """One process's view of the page: word 0 counts the slots used, then come their revisions, then their owners."""

    def __init__(self, path: str) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(self._file).st_size < mmap.PAGESIZE:
                os.ftruncate(self._file, mmap.PAGESIZE)
            self._memory = mmap.mmap(self._file, mmap.PAGESIZE)
        except BaseException:
            os.close(self._file)
            raise
        # Aligned machine words: loads and stores are atomic.
        self._words = memoryview(self._memory).cast("Q")
        self._slot = 0

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Claim a word, and keep other processes from joining meanwhile."""
        folder = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self._claim()
            yield
        finally:
            os.close(folder)

    def show(self, revision: int) -> None:
        """Tell the others about a committed revision."""
        self._words[self._slot] = revision

    def newest_foreign(self) -> int:
        """The newest revision that any other process has shown; 0 when there are no others."""
        words, slot = self._words, self._slot
        used = words[_USED]
        if used <= 1:
            return 0 if slot == 1 else words[1]
        return max(max(words[1:slot], default=0), max(words[slot + 1 : used + 1], default=0))

    def close(self) -> None:
        if self._slot:
            self._words[_OWNERS + self._slot] = 0
        self._words.release()
        self._memory.close()
        os.close(self._file)

    def _claim(self) -> None:
        if self._is_alone():
            self._memory[:] = bytes(mmap.PAGESIZE)
        # Held as long as the file is open: the sign that somebody is there.
        fcntl.flock(self._file, fcntl.LOCK_SH)
        used = self._words[_USED]
        free = (slot for slot in range(1, used + 1) if not _is_alive(self._words[_OWNERS + slot]))
        slot = next(free, used + 1)
        if slot > _SLOTS:
            raise OSError(0, f"more than {_SLOTS} processes share the database")
        self._words[_OWNERS + slot] = os.getpid()
        self._words[_USED] = max(used, slot)
        self._slot = slot

    def _is_alone(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def beacon_of(database: str) -> Beacon:
    """The page beside a database."""
    return Beacon(database + "-revision")


def _is_alive(process: int) -> bool:
    if not process:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
