"""Processor time of the processes that are measured: a figure that does not depend on who else is busy here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def seconds_of(pids: Sequence[int]) -> float:
    """User and system time of processes and of those that they started and that still run."""
    return sum(map(_seconds, with_children(pids)))


def with_children(pids: Sequence[int]) -> list[int]:
    """The processes and their children, in turn."""
    found = list(pids)
    for pid in found:
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(word) for word in task.read_text().split() if int(word) not in found]
    return found


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
