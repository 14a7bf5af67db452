"""Regular expressions in expressions."""

from __future__ import annotations

from typing import Any

from pilothouse.cel.values import fail
from pilothouse.machinery.patterns import PatternError, compile_pattern


def is_pattern(pattern: str) -> bool:
    try:
        compile_pattern(pattern)
    except PatternError:
        return False
    return True


def matches(text: Any, pattern: Any) -> bool:
    if text.__class__ is not str:
        fail("no such overload: matches")
    if pattern.__class__ is not str:
        fail("no such overload")
    try:
        compiled = compile_pattern(pattern)
    except PatternError as error:
        fail(str(error))
    return compiled.search(text) is not None
