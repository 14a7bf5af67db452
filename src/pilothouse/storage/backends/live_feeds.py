"""Those who follow the live log of a backend, in the order in which they came.

A follower hears of every revision after the one at which it came, once, until it closes its feed or the feed breaks.
One that fails over what it is told takes nothing from the others, nor from those who wrote.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pilothouse.storage.backends.contract import Event, Follower, StorageError

logger = logging.getLogger(__name__)


class LiveFeed:
    """A follower's place."""

    __slots__ = ("_feeds", "follower", "revision")

    def __init__(self, feeds: LiveFeeds, follower: Follower, revision: int) -> None:
        self._feeds, self.follower, self.revision = feeds, follower, revision

    def close(self) -> None:
        """Stop at once."""
        self._feeds.remove(self)


class LiveFeeds:
    """The feeds of one store."""

    __slots__ = ("_feeds", "_store")

    def __init__(self, store: str) -> None:
        """``store`` is what the log calls it."""
        self._store = store
        self._feeds: list[LiveFeed] = []

    def add(self, follower: Follower, revision: int) -> LiveFeed:
        """Tell a follower of everything after a revision, the last that was delivered."""
        feed = LiveFeed(self, follower, revision)
        self._feeds.append(feed)
        return feed

    def remove(self, feed: LiveFeed) -> None:
        """Tell it nothing any more. Doing so again does nothing."""
        if feed in self._feeds:
            self._feeds.remove(feed)

    def deliver(self, events: Sequence[Event], revision: int) -> None:
        """Tell all of them of the events up to and including a revision."""
        for feed in tuple(self._feeds):
            try:
                feed.follower.receive(events, revision)
            except Exception:
                logger.exception("a follower of %s failed at revision %d", self._store, revision)

    def fail(self, error: StorageError) -> None:
        """Tell all of them that nothing more will come."""
        feeds, self._feeds = self._feeds, []
        for feed in feeds:
            feed.follower.fail(error)
