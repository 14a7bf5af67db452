"""Frees large values a little at a time.

When the last reference to a tree of lists and dicts goes, all of it is freed in one call that keeps the interpreter's
lock: 8 to 20 ms for what is made of a body of 3 MB, wherever that reference happens to be. Here a tree is taken apart
from its root, level by level, and other threads get their turn in between. What somebody else refers to is left
as it is: only what nobody else can see is changed.

To take each container apart would need ten times as long as to free it. So only the first of them are, which is enough
to leave small branches of all that has many, and each of these goes as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from sys import getrefcount
from typing import Any, Final

_SOME: Final = 250
_MOST_ENTERED: Final = 2_000
_CONTAINERS: Final = (dict, list, tuple)


def _count_alone() -> int:
    value: list[Any] = []
    return getrefcount(value)


_ALONE: Final = _count_alone()
"""What ``getrefcount`` gives of a value that is in one variable of its caller and nowhere else: not all versions of
Python count the reference of the call."""


def dispose(values: list[Any]) -> None:
    """Free the values in the list, which is empty then. Whoever still has one in a variable keeps it whole."""
    waiting = deque(values)
    values.clear()
    left = _MOST_ENTERED
    while waiting:
        value = waiting.popleft()
        if getrefcount(value) > _ALONE:
            continue
        if len(value) > _SOME and not isinstance(value, tuple):
            waiting.extend(_containers(_take_some(value)))
            waiting.appendleft(value)
        elif left:
            left -= 1
            waiting.extend(_containers(value.values() if isinstance(value, dict) else value))


def _take_some(value: Any) -> list[Any]:
    """The last items of a list or dict, which has them no more."""
    if isinstance(value, dict):
        return [value.popitem()[1] for _ in range(_SOME)]
    items: list[Any] = value[-_SOME:]
    del value[-_SOME:]
    return items


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, _CONTAINERS) and value]
