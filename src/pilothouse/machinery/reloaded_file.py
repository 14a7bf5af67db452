"""A configuration file that is read again when it changes.

What cannot be read, or cannot be used, is logged and counted once, and what was in force stays so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from pilothouse.machinery.reload_metrics import ReloadMetrics
from pilothouse.machinery.watched_file import WatchedFile

logger = logging.getLogger(__name__)
T = TypeVar("T")


class ReloadedFile(Generic[T]):
    """The parsed content of a file, and an account of its changes. Raises what reading and parsing raise."""

    def __init__(self, path: str, parse: Callable[[bytes], T], reloads: ReloadMetrics) -> None:
        self._file = WatchedFile(path, parse)
        self._reloads = reloads
        reloads.in_force(self._file.content)

    @property
    def value(self) -> T:
        """The content as it was last read."""
        return self._file.value

    def poll(self) -> bool:
        """Whether there is a new content to be used; to be followed by ``accepted``. Not for the event loop."""
        if self._file.poll():
            return True
        error = self._file.take_error()
        if error is not None:
            self._refused(error)
        return False

    def poll_into(self, use: Callable[[T], None]) -> None:
        """Use a new content, if there is one. ``use`` raises OSError or ValueError if it cannot be used."""
        if not self.poll():
            return
        try:
            use(self._file.value)
        except (OSError, ValueError) as error:
            self._refused(error)
        else:
            self.accepted()

    def accepted(self) -> None:
        """The new content is in force."""
        self._reloads.note("success")
        self._reloads.in_force(self._file.content)
        logger.info("%s changed and was read again", self._file.path)

    def _refused(self, error: Exception) -> None:
        self._reloads.note("failure")
        logger.error("%s cannot be used: %s", self._file.path, error)
