"""Random identifiers (version 4 UUIDs), for the uids of objects and the ids of requests.

Each of them is 122 bits of the operating system's randomness, which is asked for many at a time: a question costs more
than all the rest.
"""

from __future__ import annotations

import os
import re
from typing import Final

_AT_ONCE: Final = 128
_SIZE: Final = 16 * _AT_ONCE
_DRAWN: Final = int("ffffffffffff0fff3fffffffffffffff" * _AT_ONCE, 16)
"""The bits of all of them that are random, ..."""
_GIVEN: Final = int("00000000000040008000000000000000" * _AT_ONCE, 16)
"""... and those that tell version and variant."""
_PARTS: Final = re.compile("(.{8})(.{4})(.{4})(.{4})(.{12})").findall
_pool: list[str] = []


def new_uid() -> str:
    """One that nobody has had before."""
    while True:  # another thread may take the last one
        try:
            return _pool.pop()
        except IndexError:
            _pool.extend(_make(os.urandom(_SIZE)))


def _make(drawn: bytes) -> list[str]:
    digits = (int.from_bytes(drawn, "big") & _DRAWN | _GIVEN).to_bytes(_SIZE, "big").hex()
    return list(map("-".join, _PARTS(digits)))


def forget() -> None:
    """For a process that was forked: what was made before belongs to the other."""
    _pool.clear()


os.register_at_fork(after_in_child=forget)
