"""Reading resourceVersion as clients send it."""

from __future__ import annotations

from typing import Final

from pilothouse.machinery import errors
from pilothouse.machinery.go_quote import quote

_MAX_DIGITS: Final = 20


def parse_version(text: str) -> int:
    """The number in a resourceVersion; empty is 0. Anything else raises ``ValueError`` with kube-apiserver's words."""
    if text in ("", "0"):
        return 0
    if text.isascii() and text.isdigit():
        # Python refuses to read thousands of digits; no number of that length is in range.
        number = int(text.lstrip("0")[: _MAX_DIGITS + 1] or "0")
        if number < 1 << 64:
            return number
        raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    raise ValueError(f"strconv.ParseUint: parsing {quote(text)}: invalid syntax")


def names_version(text: str) -> bool:
    """Whether the text is a resourceVersion other than 0."""
    try:
        return parse_version(text) != 0
    except ValueError:
        return False


def too_large_version(requested: int, current: int) -> errors.StatusError:
    """The 504 for a version that has not been reached in time; the client is told when to come back."""
    error = errors.timeout(f"Too large resource version: {requested}, current: {current}", 1)
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    error.details = {"causes": causes, "retryAfterSeconds": 1}
    return error
