"""Two connections tied together: what comes in on one goes out on the other, at the pace of the slower.

Used once HTTP is over: after a 101 has been passed on, and inside tunnels. Neither side costs a task, so thousands of
idle pairs are cheap. When one side ends, the other is closed after what is written has been sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from pilothouse.net.messages import Upgraded


class PipeEnd(Upgraded):
    """One of two ends. ``leftover`` came on this end before it was made and belongs to the other."""

    transport: asyncio.Transport | None = None

    def __init__(self, leftover: bytes = b"") -> None:
        self._other: PipeEnd | None = None
        self._leftover = leftover
        self._blocked = False
        self._gone = False
        self._on_end: Callable[[], object] | None = None

    def tie(self, other: PipeEnd, on_end: Callable[[], object] | None = None) -> None:
        """Connect both ends; ``on_end`` is called once when the pipe ends."""
        self._other, other._other = other, self
        self._on_end = on_end
        self._flush()
        other._flush()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        other = self._other
        if other is not None:
            self._flush()
            other._flush()
            if other._gone:
                self.transport.close()

    def data_received(self, data: bytes) -> None:
        other = self._other
        if other is None or other.transport is None:
            self._leftover += data
            if self.transport is not None and not self._blocked:
                self._blocked = True
                self.transport.pause_reading()
        elif not other.transport.is_closing():
            other.transport.write(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        other = self._other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.pause_reading()

    def resume_writing(self) -> None:
        other = self._other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        on_end, self._on_end = self._on_end, None
        other, self._other = self._other, None
        if other is not None:
            on_end = on_end or other._on_end
            other._on_end = None
            if other.transport is not None:
                other.transport.close()
        if on_end is not None:
            on_end()

    def drain_server(self) -> None:
        """The server stops: the pipe ends with its connections."""

    def _flush(self) -> None:
        """Hand over what came before both sides were there."""
        other = self._other
        if other is None or other.transport is None:
            return
        leftover, self._leftover = self._leftover, b""
        if leftover:
            other.transport.write(leftover)
        if self._blocked and self.transport is not None:
            self._blocked = False
            self.transport.resume_reading()
