"""Names of time zones, as Go's ``time.LoadLocation`` knows them."""

from __future__ import annotations

import re
import zoneinfo
from functools import lru_cache
from os.path import isdir, isfile
from typing import Final

_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def find_time_zone(name: str) -> None:
    """Raise ``ValueError`` for a name that stands for no time zone. Nothing means UTC."""
    if name in ("", "UTC", "Local"):
        return
    if ".." in name or name.startswith(("/", "\\")):
        raise ValueError("time: invalid location name")
    if (why := _trouble(name)) is not None:
        raise ValueError(why)


@lru_cache(1024)
def _trouble(name: str) -> str | None:
    """Why a name stands for no time zone. Not all that lies among the zones is one."""
    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        places = [f"{folder}/{name}" for folder in zoneinfo.TZPATH]
        if any(map(isdir, places)):
            return "is a directory"
        return "malformed time zone information" if any(map(isfile, places)) else f"unknown time zone {name}"
    return None


def is_well_formed(name: str) -> bool:
    """Whether every part of a name could be part of a time zone's name."""
    return all(
        part not in (".", "..") and not part.startswith("-") and _PART.fullmatch(part) is not None
        for part in name.split("/")
    )
