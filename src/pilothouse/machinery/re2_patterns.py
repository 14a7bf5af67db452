"""Regular expressions by users, compiled by RE2: linear in the text they search, bounded in memory and time.

RE2 compiles in one call that keeps the interpreter's lock, up to a microsecond for each byte of a pattern: a megabyte
would hold up everybody for a second. So patterns end at 64 KB, as Go's ``regexp`` ends with what it calls too large,
though later. Compiled ones are kept: many short ones, and few of those that may take megabytes each.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

LONGEST: Final = 64 * 1024
_SHORT: Final = 1024
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True  # nobody asks for groups, and 100,000 of them cost gigabytes


def compile_re2(pattern: str) -> Any:
    """The compiled pattern. Raises ``re2.error`` with a reason in bytes, or ``UnicodeEncodeError``."""
    if len(pattern) <= _SHORT:
        return _compile_short(pattern)
    if len(pattern) > LONGEST:
        raise re2.error(b"expression too large: " + pattern.encode())
    return _compile_long(pattern)


@lru_cache(maxsize=4096)
def _compile_short(pattern: str) -> Any:
    return re2.compile(pattern, _OPTIONS)


@lru_cache(maxsize=32)
def _compile_long(pattern: str) -> Any:
    return re2.compile(pattern, _OPTIONS)
