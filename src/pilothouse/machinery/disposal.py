"""Frees large values a little at a time.

When the last reference to a tree of lists and dicts goes, all of it is freed in one call that keeps the interpreter's
lock: 8 to 20 ms for what is made of a body of 3 MB, wherever that reference happens to be. Here a tree is taken apart
from its root, some items at a time, and other threads get their turn in between. What somebody else refers to is left
as it is: only what nobody else can see is changed.
"""

from __future__ import annotations

from sys import getrefcount
from typing import Any, Final

_SOME: Final = 250
_ALONE: Final = 2
"""What ``getrefcount`` gives of a value that is in one variable of its caller and nowhere else."""
_CONTAINERS: Final = (dict, list, tuple)


def dispose(values: list[Any]) -> None:
    """Free the values in the list, which is empty then. Whoever still has one in a variable keeps it whole."""
    while values:
        value = values.pop()
        if getrefcount(value) > _ALONE:
            continue
        if isinstance(value, dict):
            items = [value.popitem()[1] for _ in range(min(len(value), _SOME))]
        elif isinstance(value, list):
            items = value[-_SOME:]
            del value[-_SOME:]
        else:
            items = list(value)
            value = None
        if value:
            values.append(value)
        values += [item for item in items if isinstance(item, _CONTAINERS) and item]
