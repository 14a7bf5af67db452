"""What an etcd of a given version can be relied on for."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_RELIABLE_PROGRESS: Final = {(3, 4): 31, (3, 5): 13}


def answers_progress_requests(version: str) -> bool:
    """Whether a confirmed progress never runs ahead of the events before it."""
    found = _VERSION.match(version)
    if found is None:
        return False
    major, minor, patch = map(int, found.groups())
    first = _RELIABLE_PROGRESS.get((major, minor))
    return (major, minor) > (3, 5) if first is None else patch >= first
