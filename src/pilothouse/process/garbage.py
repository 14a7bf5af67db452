"""How Python looks for garbage in cycles, without holding up everybody while it does.

A look at a generation is one call that keeps the interpreter's lock, some 0.2 ms for each thousand objects in it, and
more while a long request makes them. In large lots, a server that has come to hold a few hundred thousand objects is
stopped for 100 ms and more, again and again, to find next to nothing: what requests leave behind is hardly ever a
cycle. So young objects are looked at in small lots, twice, and what is still there then is frozen: nobody looks at it
again. As cycles may die later, there is a look at everything after all, each time that twice as much has been frozen as
at the last one: in a moment when the process has little to do, or, if there is none, when twice as much again has been.

What makes cycles that live long makes some that die young. So where looks at young objects have found next to nothing,
or the last look at everything has, it is put off until eight times as much has been frozen: with the decoded objects of
150,000 pods one such look takes 1.5 s. But not for ever: after two times it is taken for granted no longer.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

THRESHOLDS: Final = (2_000, 3, 25)
"""Objects made and not freed between looks at the youngest, such looks between those at older ones, and so on."""
_FIRST_FULL: Final = 320
"""After so many looks at the second generation everything is looked at for the first time: 2.5 million objects."""
_QUIET: Final = 0.1
"""What share of a processor a process wants at most that has little to do."""
_A_LOOK: Final = THRESHOLDS[0] * THRESHOLDS[1]
"""So many objects may be new to each look at the second generation."""
_LITTLE: Final = 0.01
"""What share of the objects since the last look at everything is next to nothing."""
_MOST_PUT_OFF: Final = 2
"""So many times a look at everything is put off because of what young objects are like."""


def wanted_seconds() -> float:
    """Processor time that the process has had, or its first thread has waited for: who is starved is not idle."""
    waited = 0
    with suppress(OSError, IndexError, ValueError), Path("/proc/self/schedstat").open("rb") as file:
        waited = int(file.read().split()[1])
    return time.process_time() + waited / 1e9


class Survivors:
    """Freezes what has survived two looks; a callback of the collector."""

    def __init__(
        self,
        first_full: int = _FIRST_FULL,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = wanted_seconds,
    ) -> None:
        self._seen, self._full_at = 0, first_full
        self._last_full = self._found_young = self._put_off = 0
        self._overdue = False
        self._clock, self._processor = clock, processor
        self._polled = clock(), processor()

    def __call__(self, phase: str, info: Mapping[str, Any]) -> None:
        if phase != "stop":
            return
        if info["generation"] < 2:
            self._found_young += info["collected"]
        if info["generation"] == 0:
            return
        if info["generation"] == 2:
            if self._overdue:
                self._overdue = False
                self._note_full(info["collected"])
            gc.freeze()
            return
        self._seen += 1
        if self._overdue:
            return
        if self._seen < 2 * self._full_at or self._can_put_off():
            gc.freeze()
        else:
            self._overdue = True
            gc.unfreeze()  # the next look at the oldest generation is one at everything

    async def poll(self) -> None:
        """Look at everything now if that is due and the process has had little to do since the last call."""
        then, (began, computed) = (self._clock(), self._processor()), self._polled
        self._polled = then
        is_quiet = then[1] - computed < _QUIET * (then[0] - began)
        if is_quiet and self._seen >= self._full_at and not self._overdue and not self._can_put_off():
            gc.unfreeze()
            found = gc.collect()
            gc.freeze()
            self._note_full(found)

    def _note_full(self, found: int) -> None:
        """Put the next look at everything off for as long as what the last one has found allows."""
        self._full_at = self._seen * (8 if self._is_little(found) else 2)
        self._last_full, self._found_young, self._put_off = self._seen, 0, 0

    def _can_put_off(self) -> bool:
        """Put a look at everything off that is due, if young objects were hardly ever cycles."""
        if self._put_off == _MOST_PUT_OFF or not self._is_little(self._found_young):
            return False
        self._put_off += 1
        self._full_at = self._seen * 8
        return True

    def _is_little(self, found: int) -> bool:
        return found < _LITTLE * _A_LOOK * (self._seen - self._last_full)


def before_start(survivors: Survivors) -> None:
    """Nothing made so far goes before the process does: what starts need not pay for looking at it.

    Nor for looking at what it loads: there may be a hundred thousand objects, and clients are served meanwhile.
    """
    gc.set_threshold(*THRESHOLDS)
    gc.freeze()
    gc.callbacks.append(survivors)


def after_start() -> None:
    """What exists now lives as long as the process."""
    gc.collect()
    gc.freeze()
