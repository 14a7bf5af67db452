"""Regular expressions by users, compiled by RE2: linear in the text they search, bounded in memory and time.

RE2 compiles in one call that keeps the interpreter's lock, up to a microsecond for each byte of a pattern, 65 for a
class of Unicode, 30 for a repetition, and as much again for what it becomes: ``\\pL{100}`` takes 40 ms. So a pattern is
compiled here when it has little of that and becomes little, which a look with little memory to spare finds out in some
two milliseconds, and in another process when not (``re2_aside.py``). It ends at 64 KB, or with thousands of these, as
Go's ``regexp`` ends with what it calls too large, though later.

A compiled pattern takes what its program takes, and up to as much as it is allowed for what it has seen of texts. Most
are small and may have a little; those that are not have much, and few of them are kept.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any, Final

import re2

from pilothouse.machinery.workers import PATIENCE

logger = logging.getLogger(__name__)
LONGEST: Final = 64 * 1024
MOST_PARTS: Final = 2_000
"""So many classes of Unicode, and twice as many repetitions with a number, may stand in a pattern."""
_LONGEST_HERE: Final = 8 * 1024
_MOST_PARTS_HERE: Final = 30
"""A pattern with more is not even looked at here: that would take more than two milliseconds."""
_SHORT: Final = 1024
_SMALL_PROGRAM: Final = 600
_SMALL_MEMORY: Final = 256 * 1024
_LOOK_MEMORY: Final = 512 * 1024
"""What becomes larger than this allows takes more than some milliseconds to compile."""
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
_LOOK_OPTIONS: Final = _options(_LOOK_MEMORY)
_SMALL_OPTIONS: Final = _options(_SMALL_MEMORY)


def compile_re2(pattern: str) -> Any:
    """The compiled pattern: something with ``search`` and ``finditer``.

    Raises ``re2.error`` with a reason in bytes, or ``UnicodeEncodeError``.
    """
    small = _compile_small(pattern) if len(pattern) <= _SHORT else None
    return _compile_large(pattern) if small is None else small


def _check(pattern: str) -> None:
    if len(pattern) > LONGEST or _parts(pattern) > MOST_PARTS:
        raise _too_large(pattern)
    PATIENCE.spend(_COMPILING + len(pattern))


def _too_large(pattern: str) -> re2.error:
    return re2.error(b"expression too large: " + pattern.encode())


def _parts(pattern: str) -> int:
    return pattern.count("\\p") + pattern.count("\\P") + pattern.count("{") // 2


def _has_much(pattern: str) -> bool:
    return len(pattern) > _LONGEST_HERE or _parts(pattern) > _MOST_PARTS_HERE


def _compiled_within(pattern: str, options: re2.Options) -> Any:
    """The compiled pattern; None where it becomes larger than the options allow."""
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        if error.args and error.args[0].startswith(_TOO_LARGE):
            return None
        raise


@lru_cache(maxsize=1024)
def _compile_small(pattern: str) -> Any:
    """The compiled pattern, if it is small."""
    _check(pattern)
    compiled = None if _has_much(pattern) else _compiled_within(pattern, _SMALL_OPTIONS)
    return compiled if compiled is not None and compiled.programsize <= _SMALL_PROGRAM else None


@lru_cache(maxsize=32)
def _compile_large(pattern: str) -> Any:
    _check(pattern)
    if not _has_much(pattern) and _compiled_within(pattern, _LOOK_OPTIONS) is not None:
        return re2.compile(pattern, _LARGE_OPTIONS)
    return _compile_aside(pattern)


def _compile_aside(pattern: str) -> Any:
    from pilothouse.machinery.re2_aside import LargePattern, NoProcess

    try:
        return LargePattern(pattern)
    except NoProcess as error:
        logger.warning("a large pattern is compiled here: %s", error)
        compiled = _compiled_within(pattern, _LARGE_OPTIONS)
    except re2.error as error:
        if not error.args[0].startswith(_TOO_LARGE):
            raise
        compiled = None
    if compiled is None:
        raise _too_large(pattern)
    return compiled
