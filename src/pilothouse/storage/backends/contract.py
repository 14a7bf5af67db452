"""The contract between Pilothouse and whatever keeps its data: one ordered log with one global revision.

An empty store stands at revision 1 and the first write makes revision 2. Every successful write makes exactly one new
revision, greater than all before it, across all processes that share the store. A write is acknowledged (its awaitable
returns) only when it is durable. Reads at a past revision see the store as it was then, until `compact` forgets it.

A backend belongs to the event loop that opened it and is called from there only; it never blocks that loop. Keys are
text such as `/registry/pods/<namespace>/<name>`, ordered by code point; a prefix ends with `/`, or is empty.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

FIRST_REVISION = 1
Foreseen = Awaitable[int]
"""A `current_revision` that is being found out already, for one to wait for."""


class StorageError(Exception):
    """Whatever a store refuses or fails to do."""


class KeyExists(StorageError):
    """A create found the key alive."""

    def __init__(self, key: str, current: int) -> None:
        super().__init__(f"key {key!r} exists at revision {current}")
        self.key, self.current = key, current


class Conflict(StorageError):
    """An update or a delete expected another revision; `current` is the state in the way, None for an absent key."""

    def __init__(self, key: str, expected: int, current: KeyValue | None) -> None:
        found = f"at revision {current.revision}" if current else "absent"
        super().__init__(f"key {key!r} was expected at revision {expected} and is {found}")
        self.key, self.expected, self.current = key, expected, current


class Compacted(StorageError):
    """The revision asked for is older than what the store still remembers."""

    def __init__(self, requested: int, compacted: int) -> None:
        super().__init__(f"revision {requested} has been compacted; the oldest one kept is {compacted}")
        self.requested, self.compacted = requested, compacted


class SetBack(Compacted):
    """The store has lost what it had: its newest revision is older than one that it has told of.

    A backup was restored under us, or a member lost what it had acknowledged. Whoever followed begins anew.
    """

    def __init__(self, seen: int, newest: int) -> None:
        super().__init__(seen, newest)
        self.args = (f"the store has been set back from revision {seen} to {newest}",)


class FutureRevision(StorageError):
    """The revision asked for has not happened yet."""

    def __init__(self, requested: int, current: int) -> None:
        super().__init__(f"revision {requested} is in the future; the newest one is {current}")
        self.requested, self.current = requested, current


class TooLarge(StorageError):
    """The value is larger than the store takes. Nothing was written."""


class Unavailable(StorageError):
    """The store could not do it now (disk full, locked, closed, unreachable). The outcome of a write may be unknown."""


class Full(Unavailable):
    """There is no room left. Nothing was written; what is there can be read."""


class UnusableStore(StorageError):
    """The store cannot be opened: not ours, damaged, or written by a newer version."""


@dataclass(slots=True)
class KeyValue:
    """A live key: its value, the revision that wrote it and the revision that created it."""

    key: str
    value: bytes
    revision: int
    created: int


@dataclass(slots=True)
class Event:
    """One change of one key. `value` None is a deletion; `created` says that the key did not exist before.

    `previous` is the state before the change; a live feed leaves it out, because followers know what they had.
    `origin` is what the writer in this process passed along; None for all other writers, and in history.
    """

    key: str
    revision: int
    value: bytes | None
    created: bool
    previous: KeyValue | None = None
    origin: object = None


@dataclass(slots=True)
class Page:
    """Part of a listing in key order, read at `revision`. `remaining` counts the keys after it; -1 if not counted."""

    items: list[KeyValue]
    revision: int
    more: bool
    remaining: int


@dataclass(slots=True)
class History:
    """Part of the log in revision order, complete up to and including `revision`; a revision is never split."""

    events: list[Event]
    revision: int


class Follower(Protocol):
    """Receives the live log on the event loop; must not raise."""

    def receive(self, events: Sequence[Event], revision: int) -> None:
        """Take the events up to and including `revision`, in revision order, none left out and none twice."""

    def fail(self, error: StorageError) -> None:
        """Learn that the feed is broken and that nothing more will come."""


class Feed(Protocol):
    """A running hand-over to a follower, complete for every revision after `revision`."""

    revision: int

    def close(self) -> None:
        """Stop at once."""


class Backend(Protocol):
    """A store. Where a backend can, it hands a write's event to the followers of this process before the result."""

    @property
    def name(self) -> str:
        """What kind of store it is, for those who look into traces."""
        ...

    @property
    def is_open(self) -> bool:
        """Whether it can be used just now, as far as is known without asking."""
        ...

    async def open(self) -> None: ...

    async def close(self) -> None:
        """Finish what was accepted, release threads, files and connections."""

    async def create(self, key: str, value: bytes, ttl_seconds: int | None = None, origin: object = None) -> int:
        """Write a key that must be absent and return the revision. Raises KeyExists."""

    async def update(
        self, key: str, value: bytes, expected: int, ttl_seconds: int | None = None, origin: object = None
    ) -> int:
        """Replace a key that must stand at revision `expected`; without a ttl it lives for ever. Raises Conflict."""

    async def delete(self, key: str, expected: int, origin: object = None) -> int:
        """Delete a key that must stand at revision `expected`; return the revision of the deletion. Raises Conflict."""

    async def get(self, key: str, revision: int = 0) -> KeyValue | None:
        """Read a key now, or as of a revision. Raises Compacted, FutureRevision."""

    async def list(
        self, prefix: str, *, start: str | None = None, limit: int = 0, revision: int = 0, counted: bool = True
    ) -> Page:
        """Read keys below a prefix from `start` on, now or as of a revision. Raises Compacted, FutureRevision.

        Who does not need `remaining` says so with `counted`, because counting may cost more than the page.
        """

    async def count(self, prefix: str) -> int: ...

    async def history(self, prefix: str, after: int, limit: int = 1000) -> History:
        """Read about `limit` events after a revision. Raises Compacted (when `after` is below it), FutureRevision."""

    def follow(self, follower: Follower) -> Feed:
        """Hand over all changes of the store from now on."""

    def watch(self, prefix: str, after: int) -> AsyncIterator[Sequence[Event]]:
        """Iterate over batches of events after a revision, past ones and then live ones. Raises as `history` does."""

    async def current_revision(self) -> int:
        """The newest revision of the whole store; followers of this process have received it when this returns."""

    def foresee(self) -> Foreseen | None:
        """Begin to find out what `current_revision` will be asked for in a moment; None where that wins nothing.

        Never waits. What is given need not be waited for.
        """

    def unseen_revision(self) -> int | None:
        """At least the newest revision that any *other* process may have acknowledged; None when only asking can tell.

        Never waits. A follower that has reached it needs no `current_revision` to claim that it is up to date.
        """

    async def compact(self, revision: int) -> None:
        """Forget what was superseded at or before a revision; older reads raise Compacted. Raises FutureRevision."""

    async def compacted_revision(self) -> int: ...
