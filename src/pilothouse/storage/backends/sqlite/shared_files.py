"""A descriptor of a database's file that all stores of this process on it share.

The system drops all locks that a process holds on a file as soon as the process closes any descriptor of it, and
SQLite's locks are among them. So the file is opened once, and closed with the last store that uses it.
"""

from __future__ import annotations

import os
import threading
from typing import ClassVar


class SharedFile:
    """An open file, for as long as somebody has it: each `open` needs a `close`."""

    _open: ClassVar[dict[tuple[int, int], SharedFile]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, descriptor: int, identity: tuple[int, int]) -> None:
        self.descriptor, self._identity, self._users = descriptor, identity, 0

    @classmethod
    def open(cls, path: str) -> SharedFile:
        """The file at this path, opened if nobody has it yet. Raises OSError."""
        with cls._lock:
            status = os.stat(path)
            identity = (status.st_dev, status.st_ino)
            if identity not in cls._open:
                cls._open[identity] = cls(os.open(path, os.O_RDWR | os.O_CLOEXEC), identity)
            found = cls._open[identity]
            found._users += 1
            return found

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                del self._open[self._identity]
                os.close(self.descriptor)
