"""Two connections tied together: what comes in on one goes out on the other, at the pace of the slower.

Used once HTTP is over: after a 101 has been passed on, and inside tunnels. Neither side costs a task, so thousands of
idle pairs are cheap. When one side ends, the other is closed after what is written has been sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from pilothouse.net.messages import Upgraded
from pilothouse.net.pacing import Flow, Pace


class PipeEnd(Upgraded):
    """One of two ends. ``leftover`` came on this end before it was made and belongs to the other.

    ``pace`` is what this end is read at.
    """

    transport: asyncio.Transport | None = None

    def __init__(self, leftover: bytes = b"", pace: Pace | None = None) -> None:
        self._other: PipeEnd | None = None
        self._leftover = leftover
        self._pace = pace
        self._flow: Flow | None = None  # to the other end, once both are there
        self._gone = False
        self._on_end: Callable[[], object] | None = None

    def tie(self, other: PipeEnd, on_end: Callable[[], object] | None = None) -> None:
        """Connect both ends; ``on_end`` is called once when the pipe ends."""
        self._other, other._other = other, self
        self._on_end = on_end
        self._begin()
        other._begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        other = self._other
        if other is not None:
            self._begin()
            other._begin()
            if other._gone:
                self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self._flow is not None:
            self._flow.feed(data)
            return
        self._leftover += data
        if self.transport is not None:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        other = self._other
        if other is not None and other._flow is not None:
            other._flow.congest()

    def resume_writing(self) -> None:
        other = self._other
        if other is not None and other._flow is not None:
            other._flow.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        on_end, self._on_end = self._on_end, None
        other, self._other = self._other, None
        if self._flow is not None:
            self._flow.end()
        if other is not None:
            on_end = on_end or other._on_end
            other._on_end = None
            if other._flow is not None:
                other._flow.end()
            if other.transport is not None:
                other.transport.close()
        if on_end is not None:
            on_end()

    def drain_server(self) -> None:
        """The server stops: the pipe ends with its connections."""

    def _begin(self) -> None:
        """Once both sides are there: hand over what came before, and read on."""
        other = self._other
        if self._flow is not None or self.transport is None or other is None or other.transport is None:
            return
        self._flow = Flow(self.transport, other._send, self._pace)
        leftover, self._leftover = self._leftover, b""
        if leftover:
            self._flow.feed(leftover)
        self._flow.clear()

    def _send(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)
