"""One watch: an ordered stream of events from a revision on, at the speed of its consumer.

Timeline: (1) *initial*: the objects of a snapshot, if asked for, as ADDED; (2) *catching up*: changes since the
start, read page by page from the window or the backend's log, nothing is buffered meanwhile; (3) *live*: the
audience offers changes into a buffer that is bounded by their number and their bytes. A live watcher whose buffer
overflows is ended, so that one slow client costs the others nothing, and keeps little that nobody else wants. The
consumer calls `next_batch` until it gets an empty list, then looks at `overflowed` and `error` for the reason.

A consumer that would do no more than pass live events on gives a *listener*. While the consumer waits in `next_batch`,
the listener is told that events are there, once, and takes them later; what it gives back, and the end, wake the
consumer as ever:

    AWAY --next_batch finds nothing--> WAITING --event--> DUE --the listener takes all--> WAITING
                                       WAITING --event, no listener--> AWAY, awake
                                       WAITING --the listener gives back--> AWAY, awake; any --end--> AWAY, awake

So there is one order of events: the listener gets none while the consumer has some in hand. With a thousand watchers
what an event costs is the memory it touches, so `offer` and `take` look at little else than the watcher itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

from pilothouse.storage.backends.contract import StorageError
from pilothouse.storage.cacher.changes import BOOKMARK, Change, Matches, WatchEvent, bookmark, initial_event
from pilothouse.storage.cacher.entries import Entry
from pilothouse.storage.cacher.traits import Trait

PAGE = 500
HELD_BYTES: Final = 16 << 20
"""What may wait behind the first event."""
_AWAY: Final = 0
_WAITING: Final = 1
_DUE: Final = 2


class Listener(Protocol):
    """Takes live events while their consumer waits."""

    def ready(self) -> None:
        """Events wait: `take` them soon, not within this call."""


class WatchSource(Protocol):
    """Where a watcher gets its events from: the resource's cache."""

    @property
    def revision(self) -> int:
        """All changes up to this revision have been offered to those who are live."""

    def join(self, watcher: Watcher) -> Sequence[Change] | None:
        """Changes after the watcher's position from memory; it goes live when these are all. None: read history."""

    async def read_history(self, prefix: str, after: int) -> tuple[list[Change], int]:
        """A page of changes from the backend's log, and the revision up to which it is complete. Raises Compacted."""

    async def read(self, entries: list[Entry]) -> list[Entry]:
        """Have the data of entries made; returns those whose data can be."""

    def leave(self, watcher: Watcher) -> None:
        """Stop offering."""


class Watcher:
    """See the module's docstring. For one consumer."""

    __slots__ = (
        "_ahead",
        "_buffer",
        "_held",
        "_initial",
        "_initial_end",
        "_listener",
        "_live",
        "_source",
        "_state",
        "_waiter",
        "bookmarks",
        "client",
        "deadline",
        "ended",
        "error",
        "limit",
        "matches",
        "overflowed",
        "position",
        "prefix",
        "trait",
    )

    def __init__(
        self,
        source: WatchSource,
        prefix: str,
        after: int,
        matches: Matches | None = None,
        *,
        trait: Trait | None = None,
        bookmarks: bool = False,
        deadline: float | None = None,
        initial: list[Entry] | None = None,
        limit: int = 1000,
        client: str = "",
    ) -> None:
        self._source, self.prefix, self.matches, self.trait = source, prefix, matches, trait
        self.client = client
        """For whom it is, if for a client of the server."""
        self.bookmarks, self.deadline, self.limit = bookmarks, deadline, limit
        self.position = after
        """All events up to this revision were delivered or are in the buffer."""
        self.ended = False
        self.overflowed = False
        self.error: StorageError | None = None
        self._initial = initial
        self._initial_end = initial is not None and bookmarks
        self._buffer: list[WatchEvent] | None = None
        """What has not been taken yet, in order; None rather than an empty list."""
        self._held = 0
        """Bytes of the objects that came while something was in the buffer."""
        self._live = False
        self._ahead = True
        """No live event has come yet: the first ones may be of before the position, which may be in the future."""
        self._state = _AWAY
        self._waiter: asyncio.Future[None] | None = None
        self._listener: Listener | None = None

    @property
    def has_long_start(self) -> bool:
        """Whether there are more initial events than come at once."""
        return self._initial is not None and len(self._initial) > PAGE

    @property
    def backlog(self) -> int:
        """How many events wait for the consumer."""
        return 0 if self._buffer is None else len(self._buffer)

    @property
    def is_live(self) -> bool:
        """Whether it has caught up with the present."""
        return self._live

    @property
    def offered(self) -> int:
        """All changes up to this revision have been offered, if it is live."""
        return self._source.revision

    def listen(self, listener: Listener) -> None:
        """Tell a listener of live events while the consumer waits."""
        self._listener = listener

    async def next_batch(self) -> list[WatchEvent]:
        """Wait for events and return all there are; an empty list means that the watch has ended."""
        while self._buffer is None and not self.ended:
            if self._initial is not None:
                self._take_initial()
                await self._read_initial()
                if self._buffer is None:
                    await asyncio.sleep(0)  # nothing matched: let others have their turn before the next page
            elif self._live:
                await self._wait()
            else:
                await self.catch_up()
        batch, self._buffer = self._buffer, None
        return batch or []

    async def catch_up(self) -> None:
        """Get one page closer to the present, or go live. Raises nothing: a failure ends the watch."""
        if self._initial is not None or self._live or self.ended:
            return
        try:
            changes = self._source.join(self)
            reached = changes[-1].revision if changes else self.position
            if changes is None:
                changes, reached = await self._source.read_history(self.prefix, self.position)
        except StorageError as error:
            self.end(error)
            return
        for change in changes:
            self._collect(change)
        self.position = max(self.position, reached)

    def go_live(self) -> None:
        """Called by the source when the audience takes over."""
        self._live = True

    def offer(self, event: WatchEvent) -> None:
        """Take a live event, or end when there is no room."""
        if self._ahead:
            if event.entry.revision <= self.position:
                return
            self._ahead = False
        buffer = self._buffer
        if buffer is None:
            self._buffer = [event]
            self._held = 0
        elif len(buffer) < self.limit and self._held <= HELD_BYTES:
            buffer.append(event)
            self._held += event.entry.size
        else:
            self.overflowed = True
            self.end()
            return
        if self._state == _WAITING:
            self._rouse()

    def offer_bookmark(self, revision: int) -> None:
        """Take a mark of progress; while catching up there is none to make."""
        full = self._buffer is not None and len(self._buffer) >= self.limit
        if self._live and not self.ended and not full and revision >= self.position:
            self._keep(bookmark(revision))
            if self._state == _WAITING:
                self._rouse()

    def take(self) -> list[WatchEvent] | None:
        """For the listener: all that waits; None when the consumer is up already."""
        if self._state != _DUE:
            return None
        events, self._buffer = self._buffer, None
        self._state = _WAITING
        return events

    def give_back(self, events: list[WatchEvent]) -> None:
        """For the listener, in the same turn: leave to the consumer what could not be passed on."""
        self._buffer = events
        self._wake()

    def end(self, error: StorageError | None = None) -> None:
        """End the watch from the server's side; what is in the buffer can still be taken."""
        if not self.ended:
            self.ended, self.error, self._live = True, error, False
            self._source.leave(self)
            self._wake()

    def stop(self) -> None:
        """The consumer is gone."""
        self.end()
        self._buffer = self._initial = self._listener = None

    def _take_initial(self) -> None:
        pending = self._initial or []
        page = pending[-PAGE:]
        del pending[-PAGE:]
        matches = self.matches
        for entry in reversed(page):
            if matches is None or matches(entry):
                self._keep(initial_event(entry))
        if pending:
            return
        self._initial = None
        if self._initial_end:
            self._keep(bookmark(self.position, initial_end=True))

    async def _read_initial(self) -> None:
        """Have the data of what was taken made, and leave out what has none."""
        taken = [event.entry for event in self._buffer or () if event.type != BOOKMARK]
        readable = await self._source.read(taken)
        if len(readable) < len(taken) and self._buffer is not None:
            kept = set(readable)
            self._buffer = [event for event in self._buffer if event.type == BOOKMARK or event.entry in kept] or None

    def _collect(self, change: Change) -> None:
        if change.revision > self.position and change.key.startswith(self.prefix):
            event = change.seen_by_all() if self.matches is None else change.seen_through(self.matches)
            if event is not None:
                self._keep(event)

    def _keep(self, event: WatchEvent) -> None:
        if self._buffer is None:
            self._buffer = [event]
        else:
            self._buffer.append(event)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        self._state = _WAITING
        try:
            await self._waiter
        finally:
            self._state = _AWAY
            self._waiter = None

    def _rouse(self) -> None:
        if self._listener is None:
            self._wake()
        else:
            self._state = _DUE
            self._listener.ready()

    def _wake(self) -> None:
        self._state = _AWAY
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
