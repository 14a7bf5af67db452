"""The streams of a connection, and when their handlers may start.

    awaiting   its small body is on its way; the handler is spared the waiting, for a moment
    waiting    it may not start yet: answers that the client does not take have piled up, or there are as many handlers
               as there may be streams, counting those of cancelled requests that have yet to end
    running    its handler was called

A client that cancels what it asks for (CVE-2023-44487) has no more handlers running than one that does not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from pilothouse.net.http2.output import Output

if TYPE_CHECKING:
    from pilothouse.net.exchange import Exchange
    from pilothouse.net.http2.stream import Stream

_KEPT_HIGH: Final = 1 << 20  # bytes of answers that may not be sent: beyond this, further requests wait


class Streams:
    """Those that are open, by number."""

    __slots__ = ("_awaiting", "_limit", "_loop", "_mourned", "_open", "_output", "_running", "_waiting")

    def __init__(self, limit: int, output: Output, loop: asyncio.AbstractEventLoop) -> None:
        self._limit = limit
        self._output = output
        self._loop = loop
        self._open: dict[int, Stream] = {}
        self._waiting: dict[Stream, None] = {}
        self._awaiting: dict[Stream, float] = {}  # since when
        self._running = 0
        self._mourned = 0

    def __len__(self) -> int:
        return len(self._open)

    def get(self, number: int) -> Stream | None:
        return self._open.get(number)

    def all(self) -> list[Stream]:
        return list(self._open.values())

    @property
    def full(self) -> bool:
        """The client may open no more."""
        return len(self._open) >= self._limit

    def add(self, stream: Stream) -> None:
        self._open[stream.id] = stream

    def begin(self, stream: Stream, now: float) -> None:
        """The request is complete, but for its body perhaps."""
        if stream.awaits_body:
            self._awaiting[stream] = now
        else:
            self._start(stream)

    def body_complete(self, stream: Stream) -> None:
        """The request is complete."""
        if self._awaiting.pop(stream, None) is not None:
            self._start(stream)

    def start_late(self, before: float) -> None:
        """Call the handlers whose bodies have been awaited since then; they have to wait themselves."""
        for stream, since in list(self._awaiting.items()):
            if since < before:
                del self._awaiting[stream]
                self._start(stream)

    def start_waiting(self) -> None:
        """Start those that may by now."""
        while self._waiting and self._room:
            stream = next(iter(self._waiting))
            del self._waiting[stream]
            self._start(stream)

    @property
    def _room(self) -> bool:
        return self._output.kept <= _KEPT_HIGH and self._running + self._mourned < self._limit

    def _start(self, stream: Stream) -> None:
        if self._room:
            self._running += 1
            stream.start()
        else:
            self._waiting[stream] = None

    def forget(self, stream: Stream) -> None:
        """The stream has ended."""
        del self._open[stream.id]
        self._running -= stream.started
        self._waiting.pop(stream, None)
        self._awaiting.pop(stream, None)
        if self._waiting:
            self._loop.call_soon(self.start_waiting)

    def mourn(self, exchange: Exchange) -> None:
        """Its stream has ended, its handler not yet: it counts as long as that takes."""
        self._mourned += 1
        exchange.when_ended(self._mourning_ends)

    def _mourning_ends(self) -> None:
        self._mourned -= 1
        self.start_waiting()
