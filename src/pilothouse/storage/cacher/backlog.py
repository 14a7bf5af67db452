"""Changes of one resource that wait for a long value before them to be read.

What another writer has stored comes as bytes. Where these are long they are read aside, which takes a while, and
whatever happens to the same resource meanwhile waits behind, so that changes are applied in the order of the log. Other
resources go on: each has a backlog of its own, nearly always an empty one.

    42 short ─► applied;   43 long ─► waits, is read;   44 short ─► waits;   43 read ─► 43, 44 applied
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from pilothouse.storage.backends.contract import Event, StorageError
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.reading import EntryReader, Turn

Apply = Callable[[Event, Entry | None], None]
"""Takes over an event; one with a long value comes with the entry that was made of it."""
Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Backlog:
    """See the module's docstring. ``spawn`` starts work and tells whoever must know if it fails."""

    __slots__ = ("_apply", "_moved", "_reader", "_spawn", "_working", "waiting")

    def __init__(self, reader: EntryReader, apply: Apply, spawn: Spawn) -> None:
        self._reader, self._apply, self._spawn = reader, apply, spawn
        self.waiting: deque[tuple[Event, bool]] = deque()
        """Events in their order, and whether they are long. Every read looks whether there are any."""
        self._working = False
        self._moved: asyncio.Future[None] | None = None
        """Who waits hears of each step by it."""

    @property
    def reached(self) -> int:
        """The revision before the first change that waits; there must be one."""
        return self.waiting[0][0].revision - 1

    def add(self, event: Event, *, is_long: bool) -> None:
        """Apply an event when all before it have been."""
        self.waiting.append((event, is_long))
        if not self._working:
            self._working = True
            self._spawn(self._work_off())

    async def wait(self, revision: int) -> None:
        """Wait until nothing up to a revision waits. Raises StorageError when it never will be applied."""
        while self.waiting and self.reached < revision:
            if self._moved is None:
                self._moved = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._moved)

    def clear(self, error: StorageError) -> None:
        """Forget all that waits; whoever waits for it is told."""
        self.waiting.clear()
        moved, self._moved = self._moved, None
        if moved is not None:
            moved.set_exception(error)
            moved.exception()  # those who waited may have gone

    async def _work_off(self) -> None:
        waiting, turn = self.waiting, Turn()
        try:
            while waiting:
                event, is_long = waiting[0]
                entry: Entry | None = None
                if is_long:
                    entry = await self._reader.read_event(event, turn)
                else:
                    await turn.take(len(event.value or b""))
                if not waiting or waiting[0][0] is not event:
                    continue  # all was forgotten meanwhile
                waiting.popleft()
                if not is_long or entry is not None:
                    self._apply(event, entry)
                self._tell()
        finally:
            self._working = False

    def _tell(self) -> None:
        moved, self._moved = self._moved, None
        if moved is not None:
            moved.set_result(None)
