"""The live log of an etcd cluster: one watch over all keys, so that no revision is without an event.

That completeness is what everything here rests on:

* How far the followers are is always known exactly; "is the cache up to date" needs no progress notifications, whose
  answers are not to be trusted before etcd 3.5.13.
* A write of this process whose revision follows directly on what was delivered is itself the next event. It is
  handed out when etcd acknowledges it, without waiting for the watch to bring it, and dropped unread when it does:

    delivered 41 ─ own write acknowledged at 42 ─► 42 delivered ─ watch brings 42 (dropped), 43 ─► 43 delivered
    delivered 41 ─ own write acknowledged at 43 ─► held ─ watch brings 42 ─► 42, 43 delivered

Where `sight.py` finds that only some keys may be seen, revisions of other keys bring no event. Then the watch is asked
how far it is, while somebody waits for a revision.

A stream that breaks is taken up where it stopped, at another member. If that place has been compacted meanwhile, or is
one that etcd has not reached (it was restored from a backup, or has lost what it acknowledged), followers are told, and
begin anew with what is there now.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from pilothouse.storage.backends.contract import Compacted, Event, Follower, FutureRevision, SetBack, StorageError
from pilothouse.storage.backends.etcd.connection import Connection
from pilothouse.storage.backends.etcd.errors import CallFailed
from pilothouse.storage.backends.etcd.messages import WatchedChange
from pilothouse.storage.backends.etcd.sight import ALL_KEYS, Sight
from pilothouse.storage.backends.etcd.watches import WatchStream, event_of, opened_watch
from pilothouse.storage.backends.live_feeds import LiveFeed, LiveFeeds
from pilothouse.storage.progress import Progress

logger = logging.getLogger(__name__)
_STALL_SECONDS: Final = 3.0
"""How long the watch may stay behind what is known to exist before another member is asked."""
_ASK_SECONDS: Final = 0.1
"""How often to ask how far it is, while somebody waits, where it does not bring every revision."""
_RETRY_SECONDS: Final = (0.05, 0.2, 0.5, 1.0)


class OwnWrite:
    """A write of this process on its way: what the watch may bring before etcd's acknowledgement does, or without it.

    `landed` is the revision at which its value was seen in the log, 0 if not yet; `gone` whether a deletion of its key
    was. Values of objects are unique, so a value in the log is the write; a deletion may be anybody's.
    """

    __slots__ = ("gone", "key", "landed", "origin", "value")

    def __init__(self, key: str, value: bytes | None, origin: object) -> None:
        self.key, self.value, self.origin = key, value, origin
        self.landed, self.gone = 0, False

    def see(self, event: Event) -> None:
        """Note a change of the key."""
        if event.value is None:
            self.gone = True
        elif event.value == self.value and not self.landed:
            self.landed = event.revision


class LiveLog:
    """See the module's docstring. `run` is its work and goes on until it is cancelled."""

    def __init__(self, connection: Connection, read_revision: Callable[[], Awaitable[int]]) -> None:
        self._connection, self._read_revision = connection, read_revision
        self._progress = Progress()
        self._feeds = LiveFeeds("etcd")
        self._under_way: dict[str, list[OwnWrite]] = {}
        self._acknowledged: dict[int, Event] = {}
        self._watch: WatchStream | None = None
        self._sight = ALL_KEYS

    @property
    def revision(self) -> int:
        """What has been delivered."""
        return self._progress.revision

    # Followers

    def follow(self, follower: Follower) -> LiveFeed:
        return self._feeds.add(follower, self.revision)

    def fail(self, error: StorageError) -> None:
        """Tell all followers that nothing more will come."""
        self._feeds.fail(error)

    async def reach(self, revision: int) -> None:
        """Wait until a revision has been delivered; a member that keeps it back is left for another."""
        waited = 0.0
        while revision > self.revision:
            seconds = _STALL_SECONDS if self._sight.whole else self._ask_for_progress()
            try:
                await self._progress.reach(revision, seconds)
            except FutureRevision:
                waited += seconds
                if self._watch is not None and waited >= _STALL_SECONDS:
                    self._watch.give_up("the member keeps changes back")
                    waited = 0.0

    def _ask_for_progress(self) -> float:
        """Ask how far the watch is; in how many seconds to ask again. etcd ignores the question while it catches up."""
        if self._watch is not None:
            with suppress(CallFailed):
                self._watch.request_progress()
        return _ASK_SECONDS

    def close(self, error: StorageError) -> None:
        """The end: nobody waits or follows any more."""
        self._progress.fail(error)
        self.fail(error)

    # Own writes

    def begin(self, write: OwnWrite) -> None:
        """A write is about to be sent."""
        self._under_way.setdefault(write.key, []).append(write)

    def end(self, write: OwnWrite) -> None:
        """A write has been answered, or given up."""
        writes = self._under_way[write.key]
        writes.remove(write)
        if not writes:
            del self._under_way[write.key]

    def acknowledge(self, event: Event) -> None:
        """A write of this process has become the one event of its revision."""
        if event.revision <= self.revision:
            return
        self._acknowledged[event.revision] = event
        ready: list[Event] = []
        following = self.revision + 1
        while (event_there := self._acknowledged.pop(following, None)) is not None:
            ready.append(event_there)
            following += 1
        if ready:
            self._deliver(ready, following - 1)

    # The watch

    async def start(self, sight: Sight) -> None:
        """Find out where the log stands, as far as it can be seen. Raises StorageError."""
        self._sight = sight
        self._progress.advance(await self._read_revision())

    async def run(self) -> None:
        """Follow etcd for ever, through whatever happens to streams and members."""
        failures = 0
        while True:
            before = self.revision
            try:
                await self._find_place()
                await self._follow_stream()
            except Compacted as compacted:
                # Writes of this process may have brought it past that since the watch was asked for: none is missing.
                if isinstance(compacted, SetBack) or self.revision < compacted.compacted:
                    await self._begin_anew(compacted)
            except (CallFailed, StorageError) as error:
                logger.warning("the watch of etcd broke at revision %d and is taken up again: %s", self.revision, error)
            self._connection.pass_on()
            failures = 0 if self.revision > before else min(failures + 1, len(_RETRY_SECONDS) - 1)
            await asyncio.sleep(_RETRY_SECONDS[failures])

    async def _find_place(self) -> None:
        """See that etcd has what was delivered: a watch from a place beyond its end would wait there in silence."""
        delivered = self.revision
        newest = await self._read_revision()
        if newest < delivered:
            raise SetBack(delivered, newest)

    async def _follow_stream(self) -> None:
        sight = self._sight
        async with opened_watch(self._connection, sight.key, sight.end, self.revision, previous=False) as watch:
            self._watch = watch
            try:
                while True:
                    answer = await watch.next(lambda: self.revision)
                    self._take(answer.changes)
                    if not answer.changes and not answer.created:
                        self._pass_to(answer.revision)
            finally:
                self._watch = None

    async def _begin_anew(self, compacted: Compacted) -> None:
        logger.warning("%s; the watch of etcd begins anew", compacted)
        try:
            revision = await self._read_revision()
        except StorageError as error:
            logger.warning("etcd does not say where it stands: %s", error)
            return
        self._acknowledged.clear()
        self._progress.restart(revision)
        self.fail(compacted)

    def _take(self, changes: Sequence[WatchedChange]) -> None:
        delivered = self.revision
        fresh = [change for change in changes if change.revision > delivered]
        if not fresh:
            return
        last = fresh[-1].revision
        events = [self._own_event(change) for change in fresh]
        for revision in [revision for revision in self._acknowledged if revision <= last]:
            del self._acknowledged[revision]
        while (event := self._acknowledged.pop(last + 1, None)) is not None:
            events.append(event)
            last += 1
        self._deliver(events, last)

    def _pass_to(self, revision: int) -> None:
        """The watch has answered that it is this far: what it has not brought of that is of other keys."""
        if revision > self.revision:
            self._acknowledged = {at: event for at, event in self._acknowledged.items() if at > revision}
            self._deliver([], revision)

    def _own_event(self, change: WatchedChange) -> Event:
        acknowledged = self._acknowledged.get(change.revision)
        if acknowledged is not None and acknowledged.key == change.key:
            return acknowledged
        for write in self._under_way.get(change.key, ()):
            # The same bytes are the same state, whoever wrote them.
            if write.value == change.value:
                return event_of(change, write.origin)
        return event_of(change)

    def _deliver(self, events: list[Event], revision: int) -> None:
        if self._under_way:
            for event in events:
                for write in self._under_way.get(event.key, ()):
                    write.see(event)
        self._feeds.deliver(events, revision)
        self._progress.advance(revision)
