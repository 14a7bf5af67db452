"""The log of a container that does not exist."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from pilothouse.endpoints.query import Query


class Log:
    """Lines that tests write and clients read. ``end`` ends what follows it."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, bytes]] = []
        self._changed = asyncio.Event()
        self._ended = False

    def write(self, data: bytes) -> None:
        """Add lines."""
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        self._lines += [(stamp, line) for line in data.splitlines(keepends=True)]
        self._wake()

    def end(self) -> None:
        """Nothing more will be written."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, query: Query) -> AsyncIterator[bytes]:
        """The lines that a request asks for."""
        tail = query.integer("tailLines")
        at = max(0, len(self._lines) - tail) if tail is not None else 0
        left = query.integer("limitBytes")
        while True:
            changed = self._changed
            while at < len(self._lines):
                stamp, line = self._lines[at]
                at += 1
                shown = f"{stamp} ".encode() + line if query.boolean("timestamps") else line
                if left is not None:
                    shown = shown[:left]
                    left -= len(shown)
                yield shown
                if left == 0:
                    return
            if self._ended or not query.boolean("follow"):
                return
            await changed.wait()
