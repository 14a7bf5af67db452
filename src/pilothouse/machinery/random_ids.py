"""Random identifiers (version 4 UUIDs), for the uids of objects and the ids of requests.

Each of them is 122 bits of the operating system's randomness, which is asked for many at a time: a question costs more
than all the rest.
"""

from __future__ import annotations

import os
from typing import Final

_AT_ONCE: Final = 128
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
_pool: list[str] = []


def new_uid() -> str:
    """One that nobody has had before."""
    while True:  # another thread may take the last one
        try:
            return _pool.pop()
        except IndexError:
            _pool.extend(_make(os.urandom(16 * _AT_ONCE).hex()))


def _make(digits: str) -> list[str]:
    return [_format(digits[start : start + 32]) for start in range(0, len(digits), 32)]


def _format(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANTS[digits[16]]}{digits[17:20]}-{digits[20:]}"


def forget() -> None:
    """For a process that was forked: what was made before belongs to the other."""
    _pool.clear()


os.register_at_fork(after_in_child=forget)
