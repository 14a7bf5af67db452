"""Notes how much of a long text single calls into C are given: each keeps others from the interpreter's lock."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

MOST_IN_ONE_CALL: Final = 64 * 1024
"""Of what is looked at byte by byte: a millisecond, or two where each byte is a fault."""


class Shares:
    """What the calls that are noted here looked at."""

    def __init__(self) -> None:
        self.most = 0
        """Bytes or characters of the longest text of all calls."""
        self.total = 0

    def of(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """A function of a text, and perhaps of more."""

        def noted(text: Any, *more: Any, **named: Any) -> Any:
            self._note(len(text))
            return work(text, *more, **named)

        return noted

    def of_pattern(self, pattern: re.Pattern[Any]) -> _NotedPattern:
        return _NotedPattern(pattern, self._note)

    def _note(self, length: int) -> None:
        self.most, self.total = max(self.most, length), self.total + length


class _NotedPattern:
    """As much of a pattern as is used on long texts."""

    def __init__(self, pattern: re.Pattern[Any], note: Callable[[int], None]) -> None:
        self._pattern, self._note = pattern, note

    def match(self, text: Any, at: int = 0, end: int | None = None) -> Any:
        self._note((len(text) if end is None else min(end, len(text))) - at)
        return self._pattern.match(text, at, len(text) if end is None else end)

    def sub(self, by: Any, text: Any) -> Any:
        self._note(len(text))
        return self._pattern.sub(by, text)
