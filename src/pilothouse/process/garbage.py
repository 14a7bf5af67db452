"""How Python looks for garbage in cycles, without holding up everybody while it does.

A look at a generation is one call that keeps the interpreter's lock, some 0.2 ms for each thousand objects in it. In
large lots, a server that has come to hold a few hundred thousand objects is stopped for 100 ms and more, again and
again, to find next to nothing: what requests leave behind is hardly ever a cycle. So young objects are looked at in
small lots, twice, and what is still there then is frozen: nobody looks at it again. As cycles may die later, there is a
look at everything after all, each time that twice as much has been frozen as at the last one.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any, Final

THRESHOLDS: Final = (10_000, 3, 25)
"""Objects made and not freed between looks at the youngest, such looks between those at older ones, and so on."""
_FIRST_FULL: Final = 64
"""After so many looks at the second generation everything is looked at for the first time: 2.5 million objects."""


class Survivors:
    """Freezes what has survived two looks; a callback of the collector."""

    def __init__(self, first_full: int = _FIRST_FULL) -> None:
        self._seen, self._full_at = 0, first_full
        self._due = False

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase != "stop" or info["generation"] == 0:
            return
        if info["generation"] == 2:
            if self._due:
                self._due, self._full_at = False, 2 * self._seen
            gc.freeze()
            return
        self._seen += 1
        if self._due:
            return
        if self._seen < self._full_at:
            gc.freeze()
        else:
            self._due = True
            gc.unfreeze()  # the next look at the oldest generation is one at everything


def before_start() -> None:
    """Nothing made so far goes before the process does: what starts need not pay for looking at it."""
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()


def after_start() -> None:
    """What exists now lives as long as the process, and what comes may grow."""
    gc.collect()
    gc.freeze()
    gc.callbacks.append(Survivors())
