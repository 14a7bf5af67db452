"""Regular expressions by users, with what is wrong with them in the words of Go's ``regexp``."""

from __future__ import annotations

from typing import Any, Final

import re2

from pilothouse.machinery.re2_patterns import compile_re2

# What RE2 for C++ says, and what its sibling for Go says instead.
_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class PatternError(ValueError):
    """The text is no regular expression."""


def compile_pattern(pattern: str) -> Any:
    """The compiled pattern: something with ``search`` and ``finditer``. Raises ``PatternError``."""
    try:
        return compile_re2(pattern)
    except UnicodeEncodeError:
        why = f"invalid UTF-8: `{pattern}`"
    except re2.error as error:
        why = _explain(error)
    raise PatternError(f"error parsing regexp: {why}")


def _explain(error: Exception) -> str:
    found = error.args[0] if error.args else b""
    text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
    what, _, part = text.partition(": ")
    return f"{_WORDS.get(what, what)}: `{part}`"
