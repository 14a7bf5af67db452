"""Measures how long one callback holds the event loop, and says which code it was.

A thread looks at the loop's processor time forty times a second. A loop that has been busy is asked for a sign of life;
what it computes until it gives one was a single turn, which nobody else got in between. Processor time, not time on the
wall: on a busy machine a loop that is not at fault waits, too.

What is measured is the least it can have been: a hold may have begun up to one look earlier, and one shorter than that
may go unseen. Looking costs some ten microseconds each time, and wakes the loop only if it was busy anyway.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from pilothouse.machinery.metrics import Gauge, Histogram, Instrument, doubling_buckets
from pilothouse.machinery.pprof import Samples, Stack, stack_of
from pilothouse.machinery.processor_clock import processor_clock

logger = logging.getLogger(__name__)

LIMIT_SECONDS: Final = 0.02
"""No request is to hold the loop longer."""
_LOOK_SECONDS: Final = 0.025
_LOGGED_FROM: Final = 0.1
_LOGGED_EVERY: Final = 10.0
_FRAMES: Final = 12
_MOST_STACKS: Final = 2_000


class _Frames(NamedTuple):
    """Where a thread was: for people, and for a profile."""

    text: str
    stack: Stack


class StallMeter:
    """The meter of the loop that ``start`` was called on.

    With ``keeps_stacks`` (``--contention-profiling``) every hold is remembered by where the loop was, for a profile.
    """

    def __init__(self, *, keeps_stacks: bool = False) -> None:
        self._keeps_stacks, self._made = keeps_stacks, time.monotonic()
        self.stacks: Samples = {}
        """How often the loop was held where, and for how long in all."""
        self.longest = 0.0
        """Seconds of the longest hold."""
        self.stack = ""
        """Where the loop was at that time."""
        self._holds = Histogram(
            "pilothouse_event_loop_hold_seconds",
            "Processor time of single turns of the event loop that were longer than 20 ms.",
            buckets=doubling_buckets(LIMIT_SECONDS, 12),
        )
        self._most = Gauge(
            "pilothouse_event_loop_longest_hold_seconds", "The longest turn of the event loop so far.", joined="most"
        )
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._logged = -_LOGGED_EVERY

    def instruments(self) -> list[Instrument]:
        """What to show to those who scrape."""
        return [self._holds, self._most]

    @property
    def seconds(self) -> float:
        """How long it has been there."""
        return time.monotonic() - self._made

    def start(self) -> None:
        """Watch the running loop, whose thread this is."""
        loop, ident = asyncio.get_running_loop(), threading.get_ident()
        clock = processor_clock(ident)
        self._thread = threading.Thread(
            target=self._watch, args=(loop, ident, clock), name="pilothouse-stall-meter", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Look no more. Does not wait: the thread ends with its next look."""
        self._end.set()

    async def close(self) -> None:
        """The same, for those who wait."""
        self.stop()

    def forget(self) -> None:
        """Start anew with the longest hold; what was counted stays."""
        self.longest, self.stack = 0.0, ""

    def _watch(self, loop: asyncio.AbstractEventLoop, ident: int, clock: Callable[[], float]) -> None:
        with suppress(RuntimeError, OSError):  # the loop is closed, its thread has ended
            seen = clock()
            while not self._end.wait(_LOOK_SECONDS):
                now = clock()
                if now - seen > _LOOK_SECONDS / 2:
                    self._time(loop, ident, clock)
                    now = clock()
                seen = now

    def _time(self, loop: asyncio.AbstractEventLoop, ident: int, clock: Callable[[], float]) -> None:
        """Measure the turn that the loop is in."""
        alive, ended, frames = threading.Event(), [0.0], _Frames("", ())

        def answer() -> None:
            ended[0] = clock()
            alive.set()

        loop.call_soon_threadsafe(answer)
        started = clock()  # not before: turns that end while this thread waits for a processor are no hold
        while not alive.wait(_LOOK_SECONDS) and not self._end.is_set():
            if clock() - started > LIMIT_SECONDS:
                frames = frames if frames.text else _frames_of(ident)
        held = ended[0] - started
        if held > LIMIT_SECONDS:
            self._note(held, frames)

    def _note(self, held: float, frames: _Frames) -> None:
        stack = frames.text
        self._holds.labelled().observe(held)
        if self._keeps_stacks and (frames.stack in self.stacks or len(self.stacks) < _MOST_STACKS):
            count, nanoseconds = self.stacks.get(frames.stack, (0, 0))
            self.stacks[frames.stack] = count + 1, nanoseconds + round(held * 1e9)
        if held > self.longest:
            self.longest, self.stack = held, stack
            self._most.labelled().value = max(held, self._most.labelled().value)
        now = time.monotonic()
        if held > _LOGGED_FROM and now - self._logged >= _LOGGED_EVERY:
            self._logged = now
            logger.warning("the event loop was held for %.0f ms by\n%s", held * 1000, stack or "unknown code")


def _frames_of(ident: int) -> _Frames:
    stack = stack_of(ident)
    lines = [(path, line, name, None) for path, name, _, line in reversed(stack[:_FRAMES])]
    return _Frames("".join(traceback.StackSummary.from_list(lines).format()), stack)
