"""Flags that switch profiling and priority and fairness."""

from __future__ import annotations

from dataclasses import dataclass

from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.kinds import BOOL, STRING


@dataclass
class FeatureOptions(FlagGroup):
    """The ``features`` section."""

    section = "features"

    contention_profiling: bool = flag(
        "contention-profiling", BOOL, False, "Profile what holds the event loop, too: /debug/pprof/block."
    )
    debug_socket_path: str = flag(
        "debug-socket-path", STRING, "", "Unix socket to serve profiling and /debug/flags on, without authentication."
    )
    enable_priority_and_fairness: bool = flag(
        "enable-priority-and-fairness", BOOL, True, "Queue and dispatch requests by priority and fairness."
    )
    profiling: bool = flag("profiling", BOOL, True, "Serve profiling under /debug/pprof/.")
