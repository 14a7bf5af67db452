"""Selecting among events once their objects are converted.

Fields of custom resources are judged in the version that was asked for. Where a webhook converts, they are known only
after it has answered, so the watch itself selects by all else, and this by fields: what an object was before and is now
decides, as ever, whether it came, changed, or went.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilothouse.registry.store.store import Store
from pilothouse.storage.cacher import ADDED, BOOKMARK, DELETED, MODIFIED, Entry, WatchEvent


class LateSelection:
    """The fields that one watch selects by."""

    def __init__(self, matches: Callable[[Entry], bool], store: Store) -> None:
        self._matches, self._store = matches, store

    async def prepare(self, entries: Sequence[Entry]) -> None:
        """Have objects converted. Raises a Status."""
        await self._store.prepare_list(entries)

    async def select(self, events: list[WatchEvent]) -> list[WatchEvent]:
        """The events as who watches these fields sees them. Raises a Status."""
        await self.prepare([event.previous for event in events if event.previous is not None])
        seen = [event for event in map(self._see, events) if event is not None]
        await self.prepare([event.entry for event in seen if event.type == DELETED])
        return seen

    def _see(self, event: WatchEvent) -> WatchEvent | None:
        if event.type == BOOKMARK:
            return event
        if event.type == ADDED:
            return event if self._matches(event.entry) else None
        previous = event.previous
        before = previous is not None and self._matches(previous)
        if event.type == MODIFIED and self._matches(event.entry):
            return event if before else WatchEvent(ADDED, event.entry)
        if not before or previous is None:
            return None
        if event.type == DELETED:
            return event
        return WatchEvent(DELETED, self._store.codec.restamp(previous, event.revision))
