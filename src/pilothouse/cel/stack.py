"""Room on the stack for deeply nested expressions, given only while one of them is worked on.

Trees are read, checked, planned and evaluated by recursion. Nesting is limited per grammar rule as in kube-apiserver
(see ``parser``), so what an expression needs is bounded, but the bound is above what Python allows by default. Nearly
all expressions get by with that; for the others the limit is raised, and put back when the last of them is done.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Final

_FRAMES: Final = 12_000
_SPARE: Final = 400
"""What an expression may need without being given more."""
_PER_BRACKET: Final = 12
_PER_OPERATOR: Final = 3
_BRACKETS: Final = frozenset("([{")
_OPERATORS: Final = frozenset("+-*/%<>=!?.|&")
_SHORT: Final = _SPARE // _PER_BRACKET


class _Raised:
    """The raised limit, for as long as anybody needs it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._users == 0:
                self._before = sys.getrecursionlimit()
                if self._before < _FRAMES:
                    sys.setrecursionlimit(_FRAMES)
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                sys.setrecursionlimit(self._before)


_RAISED: Final = _Raised()
_SHALLOW: Final = nullcontext()


def is_deep(text: str) -> bool:
    """Whether a text could be nested too deep for the usual stack; counts what can nest at all."""
    if len(text) <= _SHORT:
        return False
    brackets = sum(map(text.count, _BRACKETS))
    return brackets * _PER_BRACKET + sum(map(text.count, _OPERATORS)) * _PER_OPERATOR > _SPARE


def room_for(text: str) -> AbstractContextManager[None]:
    """Holds while something is done that recurses over an expression."""
    return _RAISED if is_deep(text) else _SHALLOW
