"""JSON that is kept.

What ``orjson.dumps`` gives was cut from a buffer of at least 4 kB, and the rest of that is too small for the next one:
a hundred thousand short texts take 400 MB for as long as they are kept. A copy takes what it is long.
"""

from __future__ import annotations

from typing import Any

import orjson


def dumps_to_keep(value: Any, option: int = 0) -> bytes:
    """What ``orjson.dumps`` gives, without what it was cut from."""
    return copy_to_keep(orjson.dumps(value, option=option))


def copy_to_keep(data: bytes) -> bytes:
    """The same bytes in memory of their own."""
    return bytes(memoryview(data))
