"""Bytes held to a rate, for connections that must not take more than their share (``--max-connection-bytes-per-sec``).

A ``Pace`` counts one direction of one connection. What it does not allow yet waits with whoever read it, who reads no
more until it is gone: a slow rate becomes back-pressure, never a growing buffer. Without a rate nothing is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

_TICK: Final = 0.1  # how long bytes are saved up for: what goes out comes in pieces of at most so many seconds


class Pace:
    """So many bytes a second, saved up for no longer than a tick, but at least one byte."""

    __slots__ = ("_at", "_clock", "_rate", "_saved")

    def __init__(self, rate: int, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._at = clock()
        self._saved = self._most

    @property
    def _most(self) -> float:
        return max(1.0, self._rate * _TICK)

    def take(self, wanted: int) -> int:
        """How many of the wanted bytes may go now; they are counted."""
        now = self._clock()
        self._saved = min(self._most, self._saved + (now - self._at) * self._rate)
        self._at = now
        taken = min(wanted, int(self._saved))
        self._saved -= taken
        return taken

    @property
    def seconds_to_wait(self) -> float:
        """After how long it is worth asking again."""
        return max(_TICK / 2, (1.0 - self._saved) / self._rate)

    async def spread(self, data: bytes) -> AsyncIterator[bytes]:
        """The data in pieces, each when it may go."""
        at = 0
        while at < len(data):
            size = self.take(len(data) - at)
            if size:
                yield data[at : at + size]
                at += size
            else:
                await asyncio.sleep(self.seconds_to_wait)


def pace_of(rate: int) -> Pace | None:
    """A pace for one direction of one connection; None where it is free."""
    return Pace(rate, asyncio.get_running_loop().time) if rate > 0 else None


class Source(Protocol):
    """What is read from: a transport, or what stands before one."""

    def is_closing(self) -> bool:
        """Whether there is nothing more to come."""

    def pause_reading(self) -> None:
        """Hand over nothing more."""

    def resume_reading(self) -> None:
        """Go on."""


class Flow:
    """One direction between two transports: what is read from ``source`` is handed to ``write``.

    Reading stops while the one who is written to is congested, and while there are bytes that the pace does not allow.
    """

    __slots__ = ("_congested", "_held", "_pace", "_source", "_timer", "_write")

    def __init__(self, source: Source, write: Callable[[bytes], object], pace: Pace | None) -> None:
        self._source = source
        self._write = write
        self._pace = pace
        self._held = b""
        self._congested = False
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, data: bytes) -> None:
        """Bytes were read."""
        if self._pace is None:
            self._write(data)
            return
        self._held += data
        if self._timer is None:
            self._pass_on(self._pace)

    def congest(self) -> None:
        """The one who is written to cannot take more."""
        self._congested = True
        if not self._source.is_closing():
            self._source.pause_reading()

    def clear(self) -> None:
        """It can again."""
        self._congested = False
        self._read_on()

    def end(self) -> None:
        """Nothing goes this way any more."""
        self._held = b""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pass_on(self, pace: Pace) -> None:
        self._timer = None
        size = pace.take(len(self._held))
        if size:
            piece, self._held = self._held[:size], self._held[size:]
            self._write(piece)
        if self._held:
            if not self._source.is_closing():
                self._source.pause_reading()
            self._timer = asyncio.get_running_loop().call_later(pace.seconds_to_wait, self._pass_on, pace)
        else:
            self._read_on()

    def _read_on(self) -> None:
        if not self._held and not self._congested and not self._source.is_closing():
            self._source.resume_reading()
