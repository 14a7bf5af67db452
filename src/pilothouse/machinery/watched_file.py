"""A file given by a flag, parsed again when it changes.

Nothing here runs by itself: whoever owns the file calls ``poll`` now and then (off the event loop). A file that
becomes unreadable or wrong keeps its last good value; the error is kept for the caller to log.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class WatchedFile(Generic[T]):
    """The parsed content of a file. ``generation`` grows with every change, for caches that depend on the value."""

    def __init__(self, path: str, parse: Callable[[bytes], T]) -> None:
        self.path = path
        self._parse = parse
        self._stamp, self.content = self._read()
        self.value: T = parse(self.content)
        self.generation = 1
        self.error: Exception | None = None

    def poll(self) -> bool:
        """Look at the file; True if the value changed."""
        try:
            if _stamp(os.stat(self.path)) == self._stamp:
                return False
            self._stamp, content = self._read()
            value = self._parse(content)
        except (OSError, ValueError) as error:
            self.error = error
            return False
        self.error = None
        self.content = content
        if value == self.value:
            return False
        self.value = value
        self.generation += 1
        return True

    def take_error(self) -> Exception | None:
        """What was wrong at the last look, told once: a wrong content is not looked at again until it changes."""
        error, self.error = self.error, None
        return error

    def _read(self) -> tuple[tuple[int, ...], bytes]:
        with open(self.path, "rb") as file:
            return _stamp(os.fstat(file.fileno())), file.read()


def _stamp(stat: os.stat_result) -> tuple[int, ...]:
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
