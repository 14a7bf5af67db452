"""One change of one object, shared by all who watch it, and what a single watcher makes of it.

A watcher with a selector sees an object appear when it begins to match and disappear when it ceases to, whatever
really happened. There are at most three views of a change (ADDED, MODIFIED, DELETED); each is made once, when first
wanted, and carries a memo in which the layers above keep its encodings. DELETED shows the last state under the new
resourceVersion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

from pilothouse.storage.cacher.entries import Entry, EntryCodec

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"

Matches = Callable[[Entry], bool]
_SHARED_BYTES: Final = 16 * 1024


class WatchEvent:
    """What watchers receive. A BOOKMARK's entry has no data, only a revision."""

    __slots__ = ("__weakref__", "entry", "initial_end", "memo", "previous", "type")

    def __init__(self, type: EventType, entry: Entry, initial_end: bool = False, previous: Entry | None = None) -> None:
        self.type = type
        self.entry = entry
        self.previous = previous
        """The state before, of what was modified or deleted."""
        self.memo: dict[Any, Any] = {}
        """Encodings of this event by form, shared by all watchers that receive it."""
        self.initial_end = initial_end
        """This bookmark ends the initial events of a streamed list."""

    @property
    def revision(self) -> int:
        return self.entry.revision

    def __repr__(self) -> str:
        return f"WatchEvent({self.type}, {self.entry.key!r}, {self.entry.revision})"


_initial: Final = WeakValueDictionary[int, WatchEvent]()


def initial_event(entry: Entry) -> WatchEvent:
    """An object that a watch begins with. All watches that are at a long one at the same time share its encodings."""
    if entry.size < _SHARED_BYTES:
        return WatchEvent(ADDED, entry)
    event = _initial.get(id(entry))  # which keeps the entry, so that no other can be there
    if event is None:
        event = _initial[id(entry)] = WatchEvent(ADDED, entry)
    return event


class Change:
    """A change at a revision: `entry` is the new state (None: deleted), `previous` the old one (None: created)."""

    __slots__ = (
        "_added",
        "_codec",
        "_deleted",
        "_modified",
        "at",
        "entry",
        "key",
        "previous",
        "revision",
        "superseded",
    )

    def __init__(
        self, key: str, revision: int, entry: Entry | None, previous: Entry | None, codec: EntryCodec, at: float
    ) -> None:
        self.key, self.revision, self.entry, self.previous, self.at = key, revision, entry, previous, at
        self.superseded = 0 if previous is None else previous.size
        """Bytes of the state before, which only those who keep the change keep alive."""
        self._codec = codec
        self._added: WatchEvent | None = None
        self._modified: WatchEvent | None = None
        self._deleted: WatchEvent | None = None

    def seen_by_all(self) -> WatchEvent | None:
        """The event for watchers without a selector."""
        if self.entry is None:
            return None if self.previous is None else self._as_deleted(self.previous)
        return self._as_added(self.entry) if self.previous is None else self._as_modified(self.entry)

    def seen_through(self, matches: Matches) -> WatchEvent | None:
        """The event for watchers of objects that match; None when the change does not concern them."""
        entry, previous = self.entry, self.previous
        before = previous is not None and matches(previous)
        if entry is not None and matches(entry):
            return self._as_modified(entry) if before else self._as_added(entry)
        return self._as_deleted(previous) if before and previous is not None else None

    def last_state(self) -> Entry | None:
        """The state before the change under the revision of the change; None when there was none."""
        return None if self.previous is None else self._as_deleted(self.previous).entry

    def _as_added(self, entry: Entry) -> WatchEvent:
        if self._added is None:
            self._added = WatchEvent(ADDED, entry)
        return self._added

    def _as_modified(self, entry: Entry) -> WatchEvent:
        if self._modified is None:
            self._modified = WatchEvent(MODIFIED, entry, previous=self.previous)
        return self._modified

    def _as_deleted(self, previous: Entry) -> WatchEvent:
        if self._deleted is None:
            self._deleted = WatchEvent(DELETED, self._codec.restamp(previous, self.revision), previous=previous)
        return self._deleted


def bookmark(revision: int, initial_end: bool = False) -> WatchEvent:
    """A mark of progress: everything up to this revision has been delivered."""
    return WatchEvent(BOOKMARK, Entry("", b"", revision), initial_end)
