"""Regular expressions of users: RE2, compiled once per pattern."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from pilothouse.cel.values import fail

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as error:
        return str(error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error)


def compile_pattern(pattern: str) -> Any:
    """Return the compiled pattern, or fail in the original's words."""
    found = _compiled(pattern)
    if isinstance(found, str):
        fail(f"error parsing regexp: {found}")
    return found


def is_pattern(pattern: str) -> bool:
    return not isinstance(_compiled(pattern), str)


def matches(text: Any, pattern: Any) -> bool:
    if text.__class__ is not str:
        fail("no such overload: matches")
    if pattern.__class__ is not str:
        fail("no such overload")
    return compile_pattern(pattern).search(text) is not None
