"""Frames of a connection that went on in another protocol, taken in turns with what all others say.

A frame may be as short as six bytes, so that one read of a socket brings ten thousands of them, and each may want an
answer. Here they are taken for about a millisecond; the rest waits for a later turn of the loop, in the queue of
``reading_turns.py``, where a crowd of such connections takes no more of a turn than one of them does. Nothing is read
from the transport meanwhile.

Who cannot take more ``pause``s: what came in the same read waits here, and whoever has taken the last of it asks the
transport for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Final

from pilothouse.net.reading_turns import LONG_SECONDS, turns_of

_BETWEEN_LOOKS: Final = 16
"""Frames between two looks at the clock."""


class FrameTurns:
    """When the frames of one connection are taken. ``take_frame`` takes the next, and says whether there was one."""

    __slots__ = ("_due", "_ended", "_held", "_paused", "_take_frame", "_transport", "_turns")

    def __init__(self, transport: asyncio.Transport, take_frame: Callable[[], bool]) -> None:
        self._transport, self._take_frame = transport, take_frame
        self._turns = turns_of(asyncio.get_running_loop())
        self._due = False
        """Whether more are taken in a coming turn."""
        self._paused = False
        self._held = False
        """Whether the transport is not read because of what is here."""
        self._ended = False

    @property
    def paused(self) -> bool:
        """Whether somebody cannot take more."""
        return self._paused

    def go_on(self) -> None:
        """There is more: take it now, or when it is its turn."""
        if not (self._due or self._paused or self._ended):
            self._take()

    def pause(self) -> None:
        """Take no more."""
        self._paused = True
        self._hold()

    def resume(self) -> None:
        """What is here is taken first, then what comes."""
        self._paused = False
        self._defer()

    def end(self) -> None:
        """Whatever there is, nobody wants it any more."""
        self._ended = True

    def read_late(self) -> None:
        """For the turns: it is this connection's."""
        self._due = False
        self.go_on()

    def _take(self) -> None:
        ends, left = perf_counter() + LONG_SECONDS, _BETWEEN_LOOKS
        while not (self._paused or self._ended):
            if not self._take_frame():
                self._read_on()
                return
            left -= 1
            if not left:
                if perf_counter() >= ends:
                    self._hold()
                    self._defer()
                    return
                left = _BETWEEN_LOOKS

    def _defer(self) -> None:
        if not self._due and not self._ended:
            self._due = True
            self._turns.defer(self)

    def _hold(self) -> None:
        if not self._held:
            self._held = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._held and not (self._paused or self._ended):
            self._held = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
