"""Entries in key order: a sorted sequence in blocks, so that neither inserting nor listing depends on the total.

Each block holds up to a few hundred keys and, beside them, their entries: a listing is a handful of list slices, a
change moves a few kilobytes at most. Measured with 60,000 keys: a get under 1 µs, a full listing 0.6 ms. There is
no dict beside it: that would cost another 100 bytes per object and save half a microsecond per get.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from pilothouse.storage.cacher.entries import Entry

_BLOCK = 512


class OrderedEntries:
    """A map from key to entry, ordered by key."""

    def __init__(self) -> None:
        self._keys: list[list[str]] = []
        self._entries: list[list[Entry]] = []
        self._last: list[str] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def fill(self, entries: Iterable[Entry]) -> None:
        """Replace everything by entries that come in key order."""
        ordered = list(entries)
        self._entries = [ordered[start : start + _BLOCK] for start in range(0, len(ordered), _BLOCK)]
        self._keys = [[entry.key for entry in block] for block in self._entries]
        self._last = [block[-1] for block in self._keys]
        self._size = len(ordered)

    def get(self, key: str) -> Entry | None:
        number = bisect_left(self._last, key)
        if number == len(self._last):
            return None
        keys = self._keys[number]
        place = bisect_left(keys, key)
        return self._entries[number][place] if keys[place] == key else None

    def put(self, entry: Entry) -> Entry | None:
        """Store an entry; returns the one it replaces."""
        key = entry.key
        number = bisect_left(self._last, key)
        if number == len(self._last):
            self._append(entry)
            return None
        keys, entries = self._keys[number], self._entries[number]
        place = bisect_left(keys, key)
        if keys[place] == key:
            old = entries[place]
            entries[place] = entry
            return old
        keys.insert(place, key)
        entries.insert(place, entry)
        self._size += 1
        if len(keys) > 2 * _BLOCK:
            self._split(number)
        return None

    def remove(self, key: str) -> Entry | None:
        """Remove and return the entry of a key."""
        number = bisect_left(self._last, key)
        if number == len(self._last):
            return None
        keys, entries = self._keys[number], self._entries[number]
        place = bisect_left(keys, key)
        if keys[place] != key:
            return None
        del keys[place]
        self._size -= 1
        old = entries.pop(place)
        if keys:
            self._last[number] = keys[-1]
        else:
            del self._keys[number], self._entries[number], self._last[number]
        return old

    def between(self, low: str, high: str, limit: int = 0) -> list[Entry]:
        """The entries with low <= key < high, at most `limit` of them if given, in a list of their own."""
        first, first_place, last, last_place = self._bounds(low, high)
        found: list[Entry] = []
        for number in range(first, min(last + 1, len(self._entries))):
            start = first_place if number == first else 0
            block = self._entries[number]
            found += block[start:last_place] if number == last else block[start:] if start else block
            if limit and len(found) >= limit:
                del found[limit:]
                break
        return found

    def count(self, low: str, high: str) -> int:
        first, first_place, last, last_place = self._bounds(low, high)
        if (first, first_place) >= (last, last_place):
            return 0
        return sum(len(self._keys[number]) for number in range(first, last)) - first_place + last_place

    def _bounds(self, low: str, high: str) -> tuple[int, int, int, int]:
        first, last = bisect_left(self._last, low), bisect_left(self._last, high)
        first_place = bisect_left(self._keys[first], low) if first < len(self._keys) else 0
        last_place = bisect_left(self._keys[last], high) if last < len(self._keys) else 0
        return first, first_place, last, last_place

    def _append(self, entry: Entry) -> None:
        self._size += 1
        if self._keys and len(self._keys[-1]) < 2 * _BLOCK:
            self._keys[-1].append(entry.key)
            self._entries[-1].append(entry)
            self._last[-1] = entry.key
        else:
            self._keys.append([entry.key])
            self._entries.append([entry])
            self._last.append(entry.key)

    def _split(self, number: int) -> None:
        keys, entries = self._keys[number], self._entries[number]
        self._keys.insert(number + 1, keys[_BLOCK:])
        self._entries.insert(number + 1, entries[_BLOCK:])
        self._last.insert(number, keys[_BLOCK - 1])
        del keys[_BLOCK:], entries[_BLOCK:]
