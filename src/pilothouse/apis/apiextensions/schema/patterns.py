"""Regular expressions by users: RE2, as in kube-apiserver, linear in the text and bounded in memory."""

from __future__ import annotations

from collections.abc import Callable

import re2

from pilothouse.machinery.re2_patterns import compile_re2

Search = Callable[[str], bool]


class PatternError(ValueError):
    """The text is no regular expression. It is worded as Go words it."""


def compile_pattern(pattern: str) -> Search:
    """Whether a text contains a match. Raises ``PatternError``."""
    try:
        search = compile_re2(pattern).search
    except re2.error as error:
        raise PatternError(_explain(pattern, error)) from None
    return lambda text: search(text) is not None


_REASONS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}


def _explain(pattern: str, error: Exception) -> str:
    """RE2's complaint in the words of Go's port of it."""
    cause = error.args[0] if error.args else ""
    text = cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(cause)
    reason, _, argument = text.partition(": ")
    words = _REASONS.get(reason, reason)
    if words == "trailing backslash at end of expression":
        return f"error parsing regexp: {words}: ``"
    if words in ("missing closing )", "unexpected )"):
        argument = pattern
    return f"error parsing regexp: {words}: `{argument}`"
