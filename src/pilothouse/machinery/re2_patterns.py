"""Regular expressions by users, compiled by RE2: linear in the text they search, bounded in memory and time.

RE2 compiles in one call that keeps the interpreter's lock, up to a microsecond for each byte of a pattern, 65 for a
class of Unicode and 30 for a repetition: a megabyte would hold up everybody for a second, and so would 60 KB of
``\\pL``. So patterns end at 64 KB and a hundred of these, as Go's ``regexp`` ends with what it calls too large, though
later.

A compiled pattern takes what its program takes, and up to as much as it is allowed for what it has seen of texts. Most
are small and may have a little; those that are not have much, and few of them are kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from pilothouse.machinery.workers import PATIENCE

LONGEST: Final = 64 * 1024
MOST_EXPANDED: Final = 100
"""So many classes of Unicode, and ten times as many repetitions with a number, may stand in a pattern."""
_SHORT: Final = 1024
_SMALL_PROGRAM: Final = 600
_SMALL_MEMORY: Final = 256 * 1024
_COMPILING: Final = 400
"""What it costs to compile a pattern, in units of what expressions cost: a tenth of a millisecond at least."""
_TOO_LARGE: Final = b"pattern too large"


def _options(memory: int | None = None) -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody asks for groups, and 100,000 of them cost gigabytes
    if memory is not None:
        options.max_mem = memory
    return options


_LARGE_OPTIONS: Final = _options()
_SMALL_OPTIONS: Final = _options(_SMALL_MEMORY)


def compile_re2(pattern: str) -> Any:
    """The compiled pattern. Raises ``re2.error`` with a reason in bytes, or ``UnicodeEncodeError``."""
    small = _compile_small(pattern) if len(pattern) <= _SHORT else None
    return _compile_large(pattern) if small is None else small


def _check(pattern: str) -> None:
    expanded = pattern.count("\\p") + pattern.count("\\P") + pattern.count("{") // 10
    if len(pattern) > LONGEST or expanded > MOST_EXPANDED:
        raise re2.error(b"expression too large: " + pattern.encode())
    PATIENCE.spend(_COMPILING + len(pattern))


@lru_cache(maxsize=1024)
def _compile_small(pattern: str) -> Any:
    """The compiled pattern, if it is small."""
    _check(pattern)
    try:
        compiled = re2.compile(pattern, _SMALL_OPTIONS)
    except re2.error as error:
        if error.args and error.args[0].startswith(_TOO_LARGE):
            return None
        raise
    return compiled if compiled.programsize <= _SMALL_PROGRAM else None


@lru_cache(maxsize=32)
def _compile_large(pattern: str) -> Any:
    _check(pattern)
    return re2.compile(pattern, _LARGE_OPTIONS)
