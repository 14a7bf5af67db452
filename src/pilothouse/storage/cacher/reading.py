"""Makes entries of stored values and never holds the event loop: short ones in turns with others, long ones aside.

What kube-apiserver stores takes up to half a second to read: a network policy of a megabyte, say, that another server
has written to the same etcd.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pilothouse.machinery.workers import LONG, weighed
from pilothouse.net.work_turns import request_turns
from pilothouse.storage.backends.contract import Event, KeyValue
from pilothouse.storage.cacher.entries import Entry, EntryCodec, UnreadEntry
from pilothouse.storage.cacher.tally import CacheTally

logger = logging.getLogger(__name__)

Read = Callable[[str, bytes, int], Entry]
"""Makes an entry of a key, a stored value and a revision."""
_TURN_VALUES: Final = 50
_TURN_BYTES: Final = 2 * LONG
"""So much is read in one turn of the loop: some milliseconds."""


def is_unread(entry: Entry) -> bool:
    """Whether the entry's data is still to be made."""
    return type(entry) is UnreadEntry and entry.stored is not None


class Turn:
    """What one turn of the loop has room for."""

    __slots__ = ("_bytes", "_values")

    def __init__(self) -> None:
        self._values, self._bytes = _TURN_VALUES, _TURN_BYTES

    async def take(self, size: int) -> None:
        """Count a value; lets others have their turn when this one is over."""
        self._values -= 1
        self._bytes -= size
        if self._values <= 0 or self._bytes <= 0:
            self._values, self._bytes = _TURN_VALUES, _TURN_BYTES
            await request_turns().take()


class EntryReader:
    """Reads the values of one resource. One that cannot be read is told of, counted, and left out."""

    __slots__ = ("_codec", "_tally")

    def __init__(self, codec: EntryCodec, tally: CacheTally) -> None:
        self._codec, self._tally = codec, tally

    def read_now(self, key: str, value: bytes, revision: int, read: Read | None = None) -> Entry | None:
        """The entry of a short value."""
        try:
            return (read or self._codec.entry)(key, value, revision)
        except Exception:
            self.tell_unreadable(key, revision)
            return None

    async def read_or_raise(self, item: KeyValue) -> Entry:
        """The entry of a value that must be readable."""
        return await weighed(len(item.value), self._codec.entry, item.key, item.value, item.revision)

    async def read(self, item: KeyValue, turn: Turn, read: Read | None = None) -> Entry | None:
        """The entry of one of many values. A short one may be read in another way; a long one is read whole."""
        size = len(item.value)
        if size < LONG:
            await turn.take(size)
            return self.read_now(item.key, item.value, item.revision, read)
        try:
            return await self.read_or_raise(item)
        except Exception:
            self.tell_unreadable(item.key, item.revision)
            return None

    async def read_event(self, event: Event, turn: Turn) -> Entry | None:
        """The entry that a change has left; none of a deletion."""
        if event.value is None:
            return None
        return await self.read(KeyValue(event.key, event.value, event.revision, 0), turn)

    async def read_all(self, items: Iterable[KeyValue], read: Read | None = None) -> list[Entry]:
        """The entries of many values."""
        turn = Turn()
        return [entry for item in items if (entry := await self.read(item, turn, read)) is not None]

    async def make_data(self, entries: Sequence[Entry]) -> set[Entry]:
        """Have the data of unread entries made; returns those of which it cannot be."""
        turn = Turn()
        bad: set[Entry] = set()
        for entry in filter(is_unread, entries):
            await turn.take(entry.size)
            if not self.has_data(entry):
                bad.add(entry)
        return bad

    def has_data(self, entry: Entry) -> bool:
        """Whether the data of an entry can be made, which it is."""
        try:
            return bool(entry.data)
        except Exception:
            self.tell_unreadable(entry.key, entry.revision)
            return False

    def tell_unreadable(self, key: str, revision: int) -> None:
        """One damaged object must not make its whole resource unreadable."""
        self._tally.decode_errors += 1
        logger.exception("cannot decode %s at revision %d; it is left out", key, revision)
