"""Names of time zones, as Go's ``time.LoadLocation`` knows them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def find_time_zone(name: str) -> None:
    """Raise ``ValueError`` for a name that stands for no time zone. Nothing means UTC."""
    if name in ("", "UTC", "Local"):
        return
    if ".." in name or name.startswith(("/", "\\")):
        raise ValueError("time: invalid location name")
    if not _exists(name):
        raise ValueError(f"unknown time zone {name}")


@lru_cache(1024)
def _exists(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def is_well_formed(name: str) -> bool:
    """Whether every part of a name could be part of a time zone's name."""
    return all(
        part not in (".", "..") and not part.startswith("-") and _PART.fullmatch(part) is not None
        for part in name.split("/")
    )
