"""Numbers that may be given as a share of a whole: ``2`` or ``"25%"``."""

from __future__ import annotations


def scaled(value: int | str | None, whole: int, *, round_up: bool) -> int:
    """How many that is of the whole; nothing given is none."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-whole * percent // 100) if round_up else whole * percent // 100
