"""Who watches what: finds the watchers of a change by its key, so that a change costs only those it may concern.

A watcher is registered under the prefix it watches (the whole resource, one namespace, or one key). The candidates
for a key are the watchers registered under the key itself and under each prefix of it that ends with a slash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pilothouse.storage.backends.contract import StorageError
from pilothouse.storage.cacher.changes import Change

if TYPE_CHECKING:
    from pilothouse.storage.cacher.watcher import Watcher

logger = logging.getLogger(__name__)


class Audience:
    """The live watchers of one resource."""

    def __init__(self, prefix: str) -> None:
        self._length = len(prefix)
        self._groups: dict[str, dict[Watcher, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def __iter__(self) -> Iterator[Watcher]:
        for group in list(self._groups.values()):
            yield from list(group)

    def add(self, watcher: Watcher) -> None:
        self._groups.setdefault(watcher.prefix, {})[watcher] = None

    def discard(self, watcher: Watcher) -> None:
        group = self._groups.get(watcher.prefix)
        if group is not None:
            group.pop(watcher, None)
            if not group:
                del self._groups[watcher.prefix]

    def dispatch(self, change: Change) -> None:
        """Offer a change to all whom it may concern."""
        if not self._groups:
            return
        plain = change.seen_by_all()
        for group in self._groups_of(change.key):
            # A copy, because a watcher that cannot keep up leaves the audience.
            for watcher in list(group):
                matches = watcher.matches
                try:
                    event = plain if matches is None else change.seen_through(matches)
                except Exception as error:
                    logger.exception("the selector of a watch on %s failed", watcher.prefix)
                    watcher.end(StorageError(f"selector failed: {error}"))
                    continue
                if event is not None:
                    watcher.offer(event)

    def _groups_of(self, key: str) -> list[dict[Watcher, None]]:
        groups = self._groups
        found = [groups[key]] if key in groups else []
        end = key.rfind("/") + 1
        while end >= self._length and end > 0:
            group = groups.get(key[:end])
            if group is not None:
                found.append(group)
            end = key.rfind("/", 0, end - 1) + 1
        return found
