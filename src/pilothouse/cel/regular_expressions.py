"""Regular expressions in expressions, with kube-apiserver's words for what is wrong with them."""

from __future__ import annotations

from typing import Any

import re2

from pilothouse.cel.values import fail
from pilothouse.machinery.re2_patterns import compile_re2

# What RE2 for C++ says, and what its sibling for Go says instead.
_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


def _compiled(pattern: str) -> Any:
    try:
        return compile_re2(pattern)
    except UnicodeEncodeError:
        return f"invalid UTF-8: `{pattern}`"
    except re2.error as error:
        found = error.args[0] if error.args else b""
        text = found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
        what, colon, part = text.partition(": ")
        return f"{_WORDS.get(what, what)}: `{part}`" if colon else f"{_WORDS.get(what, what)}: ``"


def compile_pattern(pattern: str) -> Any:
    """Return the compiled pattern, or fail in kube-apiserver's words."""
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
