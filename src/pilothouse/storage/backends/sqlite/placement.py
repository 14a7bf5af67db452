"""Whether the store's files are where they were.

Who removes or replaces them takes along what is acknowledged from then on: the database goes on in files that nobody
will find again.
"""

from __future__ import annotations

import os
from typing import Final

_MISPLACED: Final = "the file that keeps the objects was removed or replaced"
_FILES: Final = ("", "-wal")


class Placement:
    """The database and its log, as they were first seen."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, tuple[int, int]] = {}

    def look(self) -> str:
        """What is wrong; empty if nothing is. Moved back they are as good as ever."""
        for suffix in _FILES:
            found, known = _identity(self._path + suffix), self._known.get(suffix)
            if known is None and found is not None:
                self._known[suffix] = found
            elif found != known:
                return _MISPLACED
        return ""


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino
