"""The clock of what shares turns of the loop."""

from __future__ import annotations


class Clock:
    """Time that passes only by work."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
