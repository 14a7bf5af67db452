"""How much is logged: what ``-v`` says, as levels of Python's logging. It can be changed while the server runs.

-v      shown in addition
0-2     messages for operators
3       a line for every request
4-      messages for debugging
"""

from __future__ import annotations

import logging
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Final

REQUESTS: Final = 17
"""The level of the line that every request gets."""
_LOGGER: Final = logging.getLogger("pilothouse")


def level_of(verbosity: int) -> int:
    """The lowest level that is shown."""
    if verbosity >= 4:
        return logging.DEBUG
    return REQUESTS if verbosity == 3 else logging.INFO


def set_verbosity(verbosity: int) -> None:
    """Show so much from now on."""
    set_level(level_of(verbosity))


def set_level(level: int) -> None:
    """The same, by the lowest level that is shown."""
    _LOGGER.setLevel(level)


def present_level() -> int:
    """The lowest level that is shown now."""
    return _LOGGER.level


class ModuleLevels(logging.Filter):
    """Lets single modules say more than the others: ``--vmodule=pattern=level``, where patterns match file names."""

    def __init__(self, verbosity: int, modules: tuple[tuple[str, int], ...]) -> None:
        super().__init__()
        self._least = level_of(verbosity)
        self._modules = [(pattern, level_of(level)) for pattern, level in modules]
        self._known: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to show a message."""
        return record.levelno >= min(self._least, logging.INFO) or record.levelno >= self._level(record.pathname)

    def _level(self, path: str) -> int:
        level = self._known.get(path)
        if level is None:
            full, name = str(PurePath(path).with_suffix("")), PurePath(path).stem
            found = (each for pattern, each in self._modules if fnmatchcase(full if "/" in pattern else name, pattern))
            level = self._known[path] = next(found, self._least)
        return level
