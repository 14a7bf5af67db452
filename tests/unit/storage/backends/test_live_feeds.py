from __future__ import annotations

from collections.abc import Sequence

import pytest

from pilothouse.storage.backends.contract import Event, StorageError, Unavailable
from pilothouse.storage.backends.live_feeds import LiveFeeds

EVENT = Event("/a", 5, b"{}", True)


class Listener:
    def __init__(self, failing: bool = False) -> None:
        self.failing = failing
        self.heard: list[int] = []
        self.errors: list[StorageError] = []

    def receive(self, events: Sequence[Event], revision: int) -> None:
        self.heard.append(revision)
        if self.failing:
            raise ValueError("no")

    def fail(self, error: StorageError) -> None:
        self.errors.append(error)


def test_who_has_closed_hears_nothing_more() -> None:
    feeds, first, second = LiveFeeds("a store"), Listener(), Listener()
    feed = feeds.add(first, 4)
    feeds.add(second, 4)
    assert feed.revision == 4
    feeds.deliver([EVENT], 5)
    feed.close()
    feed.close()
    feeds.deliver([], 6)
    assert (first.heard, second.heard) == ([5], [5, 6])


def test_a_follower_that_fails_takes_nothing_from_others(caplog: pytest.LogCaptureFixture) -> None:
    feeds, first, second = LiveFeeds("a store"), Listener(failing=True), Listener()
    feeds.add(first, 4)
    feeds.add(second, 4)
    feeds.deliver([EVENT], 5)
    assert second.heard == [5]
    assert "a follower of a store failed at revision 5" in caplog.text


def test_a_broken_feed_is_told_once() -> None:
    feeds, listener = LiveFeeds("a store"), Listener()
    feeds.add(listener, 4)
    gone = Unavailable("gone")
    feeds.fail(gone)
    feeds.fail(gone)
    feeds.deliver([EVENT], 5)
    assert (listener.errors, listener.heard) == ([gone], [])


def test_a_follower_may_leave_while_it_is_told() -> None:
    feeds, second = LiveFeeds("a store"), Listener()

    class Leaving(Listener):
        def receive(self, events: Sequence[Event], revision: int) -> None:
            super().receive(events, revision)
            feed.close()

    first = Leaving()
    feed = feeds.add(first, 4)
    feeds.add(second, 4)
    feeds.deliver([EVENT], 5)
    feeds.deliver([], 6)
    assert (first.heard, second.heard) == ([5], [5, 6])
